"""Compares the speed of training: python benchmarks/train.py [--shapes tiny] [--output FILE].

README.md beside this file says what is measured and how to read it.
"""

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Literal

from environment import command, machine, versions
from options import at_least_one, chosen
from processes import Job, run_worker
from report import notes
from train_contenders import CONTENDERS, MALLOC, missing
from train_report import Measurement, as_json, describe, figures_of, table
from train_workload import BATCHES, WORKS
from turns import in_turn, rounds_of

from tf_transformer import command_line
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
        rounds: how often each is measured, in a fresh process, all others in between.
        updates: timed updates a round, rounded up to whole passes over the four batches.
        malloc: how all processes are given memory; tuned: freed memory is kept, in large pages.
        output: file for all figures as JSON.
    """
    at_least_one(rounds=rounds, updates=updates)
    names, chosen_shapes = chosen(contenders, CONTENDERS), chosen(shapes, WORKS)
    skipped = {name: lacks for name in names if (lacks := missing(name))}
    jobs = [Job(shape, name) for shape in chosen_shapes for name in names if name not in skipped]

    def measure(job: Job) -> Iterator[Measurement]:
        return work(job, -(-updates // BATCHES), malloc)

    found, failed = in_turn(jobs, [(name, measure) for name in rounds_of(rounds)], describe)
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


def work(job: Job, passes: int, malloc: str) -> Iterator[Measurement]:
    """Trains a contender in a process of its own.

    Raises:
        WorkerError: when it fails.
    """
    variables = CONTENDERS[job.contender].environment | MALLOC[malloc]
    for found in run_worker(_PROGRAM, [job.contender, job.shape, str(passes)], variables):
        yield Measurement(*job, **found)


if __name__ == "__main__":
    command_line.run(main)
