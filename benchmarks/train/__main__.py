"""Compares the speed of training with other libraries.

    python -m benchmarks.train --shapes tiny --systems tf_transformer,keras

README.md in the folder above describes what is measured and how to read it.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import Process
from benchmarks.harness.speed import (
    Measurement,
    Place,
    costs,
    finish,
    joined,
    measurement,
    speeds_of,
)
from benchmarks.harness.turns import Job, interleaved, rounds_of, show
from benchmarks.train.report import check, describe, rows_of, table
from benchmarks.train.systems import MALLOC, SYSTEMS, missing
from benchmarks.train.workload import BATCHES, CELLS
from tf_transformer.commands import command_line

PACKAGES = (
    *("tf_transformer", "tensorflow", "keras", "keras-hub", "torch", "transformers"),
    *("jax", "flax", "optax", "numpy"),
)
# The first run traces and compiles; the second does what is put off until something has run.
_WARM_UP_RUNS = 2


def main(
    shapes: str = "base,tiny",
    systems: str = ",".join(SYSTEMS),
    rounds: int = 3,
    updates: int = 20,
    malloc: Literal["stock", "tuned"] = "stock",
    output: str = "",
) -> None:
    """Measures the speed of training of several systems in turn, and prints a table per shape.

    Args:
        shapes: sizes of the model: base, tiny, or both.
        systems: which to measure.
        rounds: how often all are measured, in fresh processes.
        updates: timed updates per round, rounded up to whole runs over the four batches. All
            systems take turns, a run each.
        malloc: memory of all processes; tuned: freed memory is kept, in large pages.
        output: result file to write, for example results/train_tiny.json.
    """
    at_least_one(rounds=rounds, updates=updates)
    names, chosen_shapes = chosen(systems, SYSTEMS), chosen(shapes, CELLS)
    skipped = {name: lacks for name in names if (lacks := missing(name))}
    found: list[Measurement] = []
    failed: dict[Job, str] = {}
    for round_ in rounds_of(rounds):
        for shape in chosen_shapes:
            jobs = [Job(shape, name) for name in names if name not in skipped]
            jobs = [job for job in jobs if job not in failed]
            more, errors = measure(round_, jobs, -(-updates // BATCHES), malloc)
            found, failed = found + more, failed | errors
    speeds, last = speeds_of(found), {each.place: each for each in found}
    for shape in chosen_shapes:
        print(f"\n{table(speeds, last, shape, names)}\n\nper update:\n\n{costs(speeds, shape)}")
    finish(rows_of(speeds, last), skipped, failed, PACKAGES, output)


def measure(
    round_: str, jobs: Sequence[Job], runs: int, malloc: str
) -> tuple[list[Measurement], dict[Job, str]]:
    """Trains systems in processes of their own, one run of each in turn.

    Args:
        round_: its name.
        jobs: systems and shapes.
        runs: timed ones of each.
        malloc: memory of their processes.

    Returns:
        the measurements, and the reason of each failure.
    """

    def work(job: Job) -> Iterator[Measurement]:
        place = Place(job.shape, job.system, CELLS[job.shape])
        asked = {"systems": "benchmarks.train.systems", **job._asdict(), "folder": ""}
        asked["cell"] = place.cell
        with Process({**SYSTEMS[job.system].environment, **MALLOC[malloc]}) as process:
            for number in range(runs + 1):
                warm_up = {} if number else {"warm_up": _WARM_UP_RUNS, "repeats": 0}
                fields = process.call("benchmarks.harness.tasks:measure", **asked, **warm_up)
                if not number:
                    show(round_, job, "warm")
                yield measurement(place, fields)

    of_jobs, failed = interleaved(jobs, work)
    measured = []
    for job, found in of_jobs.items():
        try:
            together = joined(found)
            check(together)
            measured.append(together)
            show(round_, job, describe(together))
        except RuntimeError as error:
            failed[job] = str(error)
    for job, reason in failed.items():
        show(round_, job, f"failed: {reason}")
    return measured, failed


if __name__ == "__main__":
    command_line.run(main)
