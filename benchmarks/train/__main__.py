"""Compares the speed of training with other libraries.

    python -m benchmarks.train --shapes tiny --systems tf_transformer,keras
    python -m benchmarks.train --shapes tiny --source train.en --target train.de

benchmarks/README.md describes the measurement and its table.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import Process, call
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
from benchmarks.train.systems import MALLOC, SYSTEMS, TEXT_SYSTEMS, missing
from benchmarks.train.workload import BATCHES, CELLS, TEXT_BATCHES, Cell
from tf_transformer.commands import command_line

PACKAGES = (
    *("tf_transformer", "tensorflow", "keras", "keras-hub", "torch", "transformers"),
    *("jax", "flax", "optax", "numpy"),
)
# The first run traces and compiles. The second does work that libraries delay until then.
_WARM_UP_RUNS = 2


def main(
    shapes: str = "base,tiny",
    systems: str = "",
    source: str = "",
    target: str = "",
    rounds: int = 3,
    updates: int = 20,
    malloc: Literal["kept", "huge_pages"] = "kept",
    dtype: Literal["float32", "bfloat16"] = "float32",
    output: str = "",
) -> None:
    """Measures the speed of training of several systems in turn, and prints a table per shape.

    Args:
        shapes: sizes of the model: base, tiny, or both.
        systems: systems to measure; empty: all.
        source: file of sentences. Batches then come from a training run on this text, with padding
            and several shapes. Empty: random batches of one shape.
        target: file of translations; line n translates line n of source.
        rounds: number of measurements of each system, in a fresh process each time.
        updates: timed updates per round, rounded up to whole runs over the batches. All
            systems take turns, run by run.
        malloc: allocator of all processes. kept: keeps freed memory, like train.py. huge_pages:
            also takes memory in huge pages.
        dtype: of the products. bfloat16: mixed_bfloat16 of Keras, autocast of torch.
        output: result file to write, like benchmarks/results/train_tiny.json.
    """
    at_least_one(rounds=rounds, updates=updates)
    known = TEXT_SYSTEMS if source else SYSTEMS
    names = chosen(systems, known) if systems else list(known)
    chosen_shapes = chosen(shapes, CELLS)
    skipped = {name: lacks for name in names if (lacks := missing(name))}
    found: list[Measurement] = []
    failed: dict[Job, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        cells = {shape: CELLS[shape]._replace(dtype=dtype) for shape in chosen_shapes}
        if source:
            write = "benchmarks.train.text:write"
            files = {"folder": folder, "source": os.path.abspath(source)}
            files["target"] = os.path.abspath(target)
            sizes = {shape: call(write, shape=shape, **files)[:2] for shape in cells}
            cells = {shape: Cell(*size, dtype) for shape, size in sizes.items()}
        for round_ in rounds_of(rounds):
            for shape in chosen_shapes:
                jobs = [Job(shape, name) for name in names if name not in skipped]
                jobs = [job for job in jobs if job not in failed]
                runs = -(-updates // (TEXT_BATCHES if source else BATCHES))
                more, errors = measure(round_, jobs, cells, folder, runs, malloc)
                found, failed = found + more, failed | errors
    speeds, last = speeds_of(found), {measured.place: measured for measured in found}
    for shape, cell in cells.items():
        described = table(speeds, last, shape, cell, names)
        print(f"\n{described}\n\nper update:\n\n{costs(speeds, shape)}")
    finish(rows_of(speeds, last), skipped, failed, PACKAGES, output)


def measure(
    round_: str,
    jobs: Sequence[Job],
    cells: Mapping[str, Cell],
    folder: str,
    runs: int,
    malloc: str,
) -> tuple[list[Measurement], dict[Job, str]]:
    """Trains each system in a process; the systems take turns, run by run.

    Args:
        round_: name of the round.
        jobs: systems and shapes.
        cells: the batches of each shape.
        folder: folder of their files.
        runs: number of timed runs of each.
        malloc: the allocator's setting in the processes.

    Returns:
        the measurements, and the reason of each failure.
    """

    def work(job: Job) -> Iterator[Measurement]:
        place, start = Place(job.shape, job.system, cells[job.shape]), time.perf_counter()
        asked = {"systems": "benchmarks.train.systems", **job._asdict(), "folder": folder}
        asked["cell"] = place.cell
        with Process({**SYSTEMS[job.system].environment, **MALLOC[malloc]}) as process:
            for number in range(runs + 1):
                warm_up = {} if number else {"warm_up": _WARM_UP_RUNS, "repeats": 0}
                fields = process.call("benchmarks.harness.tasks:measure", **asked, **warm_up)
                ready = 0.0 if number else time.perf_counter() - start
                if not number:
                    show(round_, job, f"warm after {ready:.0f} s")
                yield measurement(place, fields | {"ready_seconds": ready})

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
