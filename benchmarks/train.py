"""Compares the speed of training: python benchmarks/train.py [--shapes tiny] [--output FILE].

README.md beside this file says what is measured and how to read it.
"""

import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Literal

from environment import command, machine, versions
from options import at_least_one, chosen
from processes import Job, run_worker
from report import notes
from train_contenders import CONTENDERS, MALLOC, missing
from train_report import Measurement, as_json, describe, figures_of, joined, table
from train_workload import BATCHES, WORKS
from turns import rounds_of, show, side_by_side

from tf_transformer.commands import command_line
from tf_transformer.files import write_whole

PACKAGES = (
    *("tf_transformer", "tensorflow", "keras", "keras-hub", "torch", "transformers"),
    *("jax", "flax", "optax", "numpy"),
)
_PROGRAM = pathlib.Path(__file__).with_name("train_worker.py")


def main(
    shapes: str = "base,tiny",
    contenders: str = ",".join(CONTENDERS),
    rounds: int = 3,
    updates: int = 20,
    malloc: Literal["stock", "tuned"] = "stock",
    output: str = "",
) -> None:
    """Measures contenders in turn, round after round, and prints a table a shape.

    Args:
        shapes: which of base and tiny.
        contenders: who takes part.
        rounds: how often all are measured, in fresh processes.
        updates: timed updates a round, rounded up to whole passes over the four batches; passes
            of all contenders take turns.
        malloc: how all processes are given memory; tuned: freed memory is kept, in large pages.
        output: file for all figures as JSON.
    """
    at_least_one(rounds=rounds, updates=updates)
    names, chosen_shapes = chosen(contenders, CONTENDERS), chosen(shapes, WORKS)
    skipped = {name: lacks for name in names if (lacks := missing(name))}
    found: list[Measurement] = []
    failed: dict[Job, str] = {}
    for round_ in rounds_of(rounds):
        for shape in chosen_shapes:
            jobs = [Job(shape, name) for name in names if name not in skipped]
            jobs = [job for job in jobs if job not in failed]
            more, errors = measure(round_, jobs, -(-updates // BATCHES), malloc)
            found, failed = found + more, failed | errors
    figures = figures_of(found)
    for shape in chosen_shapes:
        print(f"\n{table(figures, shape, names)}")
    about = {"command": command(), "machine": machine(), "versions": versions(*PACKAGES)}
    print("", notes(about, skipped, failed), sep="\n")
    if output:
        left_out = {"skipped": skipped, "failed": {" ".join(job): failed[job] for job in failed}}
        result = about | left_out | {"figures": as_json(figures)}
        write_whole(output, json.dumps(result, indent=1) + "\n")
    if failed:
        sys.exit(1)


def measure(
    round_: str, jobs: Sequence[Job], passes: int, malloc: str
) -> tuple[list[Measurement], dict[Job, str]]:
    """Trains contenders in processes of their own, a pass of each in turn.

    Args:
        round_: its name.
        jobs: who takes part.
        passes: timed ones of each.
        malloc: how they are given memory.

    Returns:
        what was found, and why contenders failed.
    """

    def work(job: Job) -> Iterator[Measurement]:
        variables = CONTENDERS[job.contender].environment | MALLOC[malloc]
        for report in run_worker(_PROGRAM, [job.contender, job.shape], variables, passes):
            if not report["seconds"]:
                show(round_, job, "warm")
            yield Measurement(*job, **report)

    reports, failed = side_by_side(jobs, work)
    found = [joined(of_job) for of_job in reports.values()]
    for measurement in found:
        show(round_, Job(*measurement[:2]), describe(measurement))
    for job, error in failed.items():
        show(round_, job, f"failed: {error}")
    return found, failed


if __name__ == "__main__":
    command_line.run(main)
