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
    """The result files that were measured on a machine: of translation, training, real text."""

    decode: str
    train: Sequence[str] = ()
    text: str | None = None


MACHINES = {
    "amd_avx512": Machine("decode_int8", ("train_base", "train_tiny"), "real_text"),
    "amd_avx2": Machine("decode_avx2"),
}


class Work(NamedTuple):
    """The speeds of one kind of work on a machine."""

    name: str
    default: float  # this project
    compiled: float  # this project, compiled by XLA
    fastest: float  # the fastest other system
    system: str  # its name


def works(machine: Machine) -> list[Work]:
    """Both forms of this project and the fastest other system, for each kind of work."""
    found = []
    for shape in ("base", "tiny"):
        for cell in CELLS:
            systems = {
                row["system"]: row["tokens_per_second"]
                for row in rows_of(machine.decode)
                if (row["shape"], row["beam"], row["batch"]) == (shape, *cell)
            }
            name = f"translation, {shape}, {cell_title(*cell)}"
            found.append(_work(name, systems, "savedmodel", TRANSLATING))
    for shape in ("base", "tiny") if machine.train else ():
        systems = {
            row["system"]: row["tokens_per_second"]
            for name in machine.train
            for row in rows_of(name)
            if row["shape"] == shape and "tokens_per_second" in row
        }
        found.append(_work(f"training, {shape}", systems, "tf_transformer", TRAINED))
    if machine.text:
        systems = {row["system"]: row["sentences_per_second"] for row in rows_of(machine.text)}
        found.append(_work("captions, sentences/s", systems, "savedmodel", TRANSLATING))
    return found


def speeds(machine: Machine) -> str:
    """The table of a machine, with ratios to the fastest other system."""
    rows = [
        [
            work.name,
            *(f"{own:,.0f} ({own / work.fastest:.2f})" for own in (work.default, work.compiled)),
            f"{work.fastest:,.0f} {work.system}",
        ]
        for work in works(machine)
    ]
    return markdown(["work", "default", "compiled by XLA", "fastest other system"], rows)


def measured(machine: Machine) -> str:
    """When and with what the results of a machine were measured, and the commands."""
    names = [machine.decode, *machine.train, *filter(None, [machine.text])]
    commands = "\n".join(read(name)["command"] for name in names)
    return f"{measured_with(names)}\n\n```\n{commands}\n```"


def cell_title(beam: int, batch: int) -> str:
    """The header of a cell of decoding."""
    return f"{'greedy' if beam == 1 else f'beam {beam}'}, batch {batch}"


def _work(name: str, systems: Mapping[str, float], own: str, others: Mapping[str, str]) -> Work:
    """The work of these systems, by the name of `own`; `others` has the names of other systems."""
    default, compiled = systems[own], systems[f"{own}_xla"]
    theirs = {
        system: speed
        for system, speed in systems.items()
        if system in others.keys() - {own, f"{own}_xla"}
    }
    fastest = max(theirs, key=lambda system: theirs[system])
    return Work(name, default, compiled, theirs[fastest], others[fastest])
