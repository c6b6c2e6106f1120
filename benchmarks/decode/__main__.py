"""Compares the speed of translation with other inference engines.

    python -m benchmarks.decode --shapes tiny --systems savedmodel,ctranslate2

benchmarks/README.md describes the measurement and its table.
"""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.decode.report import rows_of, table
from benchmarks.decode.systems import SYSTEMS
from benchmarks.decode.workload import Cell
from benchmarks.harness.options import at_least_one, chosen, numbers
from benchmarks.harness.processes import Process
from benchmarks.harness.shapes import SHAPES
from benchmarks.harness.speed import (
    Measurement,
    Place,
    costs,
    finish,
    measurement,
    speeds_of,
    tokens_per_second,
)
from benchmarks.harness.systems import not_installed
from benchmarks.harness.turns import Job, in_turn, rounds_of
from tf_transformer.commands import command_line

PACKAGES = (
    *("tf_transformer", "tensorflow", "tensorflow-text", "keras", "sentencepiece"),
    *("ctranslate2", "onnxruntime", "ai-edge-litert", "transformers", "torch", "pymarian", "numpy"),
)
_WARM_UP_CALLS = 3
_MODULE = "benchmarks.decode.systems"


def main(
    shapes: str = "base,tiny",
    batches: str = "1,32",
    beams: str = "1,4",
    target_tokens: str = "24",
    systems: str = ",".join(SYSTEMS),
    rounds: int = 3,
    repeats: int = 5,
    min_seconds: float = 1.0,
    output: str = "",
) -> None:
    """Measures the speed of translation of several systems in turn, and prints a table per shape.

    Args:
        shapes: sizes of the model: tiny, base, big, opus, tc_big, with commas between them.
        batches: numbers of sentences in a call.
        beams: hypotheses per sentence; 1: greedy search.
        target_tokens: tokens of each translation.
        systems: systems to measure.
        rounds: number of measurements of each system, in a fresh process each time. The systems
            take turns.
        repeats: smallest number of timed calls of a cell in a round.
        min_seconds: smallest total time of these calls.
        output: result file to write, like benchmarks/results/decode.json.
    """
    at_least_one(rounds=rounds, repeats=repeats)
    names, chosen_shapes = chosen(systems, SYSTEMS), chosen(shapes, SHAPES)
    cells = [
        Cell(beam, batch, tokens)
        for tokens in numbers(target_tokens)
        for batch in numbers(batches)
        for beam in numbers(beams)
    ]
    lacking = {name: not_installed(SYSTEMS[name].packages) for name in names}
    skipped = {name: packages for name, packages in lacking.items() if packages}
    jobs = [Job(shape, name) for shape in chosen_shapes for name in names if name not in skipped]
    runs = {"warm_up": _WARM_UP_CALLS, "repeats": repeats, "min_seconds": min_seconds}
    measurements, failed = measure_all(jobs, cells, rounds, runs)
    speeds = speeds_of(measurements)
    for shape in chosen_shapes:
        print(f"\n{table(speeds, shape, names, cells)}\n\nper call:\n\n{costs(speeds, shape)}")
    finish(rows_of(speeds), skipped, failed, PACKAGES, output)


def measure_all(
    jobs: Sequence[Job], cells: Sequence[Cell], rounds: int, runs: dict[str, Any]
) -> tuple[list[Measurement], dict[Job, str]]:
    """Builds the files of all jobs, then measures each job once per round.

    Args:
        jobs: systems and shapes.
        cells: the cells to measure for each job.
        rounds: number of rounds.
        runs: warm_up, repeats and min_seconds of a cell.

    Returns:
        the measurements, and the reason for each failure.
    """
    with tempfile.TemporaryDirectory() as folder:

        def build(job: Job) -> Iterator[Measurement]:
            with Process(SYSTEMS[job.system].environment) as process:
                process.call("benchmarks.harness.tasks:build", **place(job), cells=cells)
            return iter(())

        def measure(job: Job) -> Iterator[Measurement]:
            with Process(SYSTEMS[job.system].environment) as process:
                for cell in cells:
                    asked = place(job) | {"cell": cell} | runs
                    found = process.call("benchmarks.harness.tasks:measure", **asked)
                    yield measurement(Place(job.shape, job.system, cell), found)

        def place(job: Job) -> dict[str, Any]:
            return {"systems": _MODULE, **job._asdict(), "folder": folder}

        steps = [("build", build), *((name, measure) for name in rounds_of(rounds))]
        return in_turn(jobs, steps, describe)


def describe(found: Measurement) -> str:
    """A line of progress."""
    return f"{found.place.cell}: {tokens_per_second(found):,.0f} tokens/s"


if __name__ == "__main__":
    command_line.run(main)
