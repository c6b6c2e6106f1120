"""Tables of speed beside other systems, one for each machine."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures.rendering import measured_with, rows_of
from benchmarks.harness.results import read
from benchmarks.harness.tables import markdown

CELLS = ((1, 1), (4, 1), (1, 32), (4, 32))  # beam and batch
TRAINED = {
    "tf_transformer": "this project",
    "tf_transformer_xla": "this project, `--train.jit_compile true`",
    "keras_xla": "Keras' layers, with XLA",
    "keras": "Keras' layers",
    "keras_hub_xla": "KerasHub, with XLA",
    "keras_hub": "KerasHub",
    "flax": "Flax",
    "torch_compile": "torch, compiled",
    "torch": "torch",
    "marian": "Hugging Face Marian",
}
TRANSLATING = {
    "ctranslate2": "CTranslate2",
    "ctranslate2_file": "CTranslate2, whole file",
    "marian": "Hugging Face Marian",
}


class Machine(NamedTuple):
    """The result files that were measured on a machine."""

    decode: str
    train: Sequence[str]
    text: str


MACHINES = {
    "amd_avx512": Machine("decode", ("train_base", "train_tiny"), "real_text"),
    "intel_avx512": Machine("decode_intel", ("train_intel",), "real_text_intel"),
    "amd_avx2": Machine("decode_avx2", ("train_avx2",), "real_text_avx2"),
}


def speeds(machine: Machine) -> str:
    """Both forms of this project and the fastest other system, for each kind of work."""
    rows = []
    for shape in ("base", "tiny"):
        for cell in CELLS:
            systems = {
                row["system"]: row["tokens_per_second"]
                for row in rows_of(machine.decode)
                if (row["shape"], row["beam"], row["batch"]) == (shape, *cell)
            }
            work = f"translation, {shape}, {cell_title(*cell)}"
            rows.append(_row(work, systems, "savedmodel", TRANSLATING))
    for shape in ("base", "tiny"):
        systems = {
            row["system"]: row["tokens_per_second"]
            for name in machine.train
            for row in rows_of(name)
            if row["shape"] == shape and "tokens_per_second" in row
        }
        rows.append(_row(f"training, {shape}", systems, "tf_transformer", TRAINED))
    systems = {row["system"]: row["sentences_per_second"] for row in rows_of(machine.text)}
    rows.append(_row("captions, sentences/s", systems, "savedmodel", TRANSLATING))
    return markdown(["work", "default", "compiled by XLA", "fastest other system"], rows)


def measured(machine: Machine) -> str:
    """When and with what the results of a machine were measured, and the commands."""
    names = (machine.decode, *machine.train, machine.text)
    commands = "\n".join(read(name)["command"] for name in names)
    return f"{measured_with(names)}\n\n```\n{commands}\n```"


def cell_title(beam: int, batch: int) -> str:
    """The header of a cell of decoding."""
    return f"{'greedy' if beam == 1 else f'beam {beam}'}, batch {batch}"


def _row(work: str, systems: Mapping[str, float], own: str, others: Mapping[str, str]) -> list[str]:
    """The speeds of `own` and its compiled form, with ratios to the fastest other system."""
    ours = {system: systems[system] for system in (own, f"{own}_xla")}
    theirs = {system: speed for system, speed in systems.items() if system in others.keys() - ours}
    fastest = max(theirs, key=lambda system: theirs[system])
    return [
        work,
        *(f"{speed:,.0f} ({speed / theirs[fastest]:.2f})" for speed in ours.values()),
        f"{theirs[fastest]:,.0f} {others[fastest]}",
    ]
