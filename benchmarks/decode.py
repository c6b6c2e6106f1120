"""Compares the speed of translation: python benchmarks/decode.py [--shapes tiny] [--output FILE].

README.md beside this file says what is measured and how to read it.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from contenders import CONTENDERS, missing_packages
from environment import command, machine, versions
from options import at_least_one, chosen, numbers
from processes import Job, work
from report import Measurement, as_json, figures_of, notes, table, tokens_per_second
from turns import in_turn, rounds_of
from workload import SHAPES, Cell

from tf_transformer.commands import command_line
from tf_transformer.files import write_whole

PACKAGES = (
    *("tf_transformer", "tensorflow", "tensorflow-text", "keras", "sentencepiece"),
    *("ctranslate2", "transformers", "torch", "numpy"),
)


def main(
    shapes: str = "base,tiny",
    batches: str = "1,32",
    beams: str = "1,4",
    contenders: str = ",".join(CONTENDERS),
    rounds: int = 3,
    repeats: int = 5,
    min_seconds: float = 1.0,
    output: str = "",
) -> None:
    """Measures contenders in turn, round after round, and prints a table a shape.

    Args:
        shapes: which of base and tiny.
        batches: sentences at once.
        beams: hypotheses kept a sentence; 1: greedy.
        contenders: who takes part.
        rounds: how often each is measured, in a fresh process, all others in between.
        repeats: the fewest timed calls of a cell in a round.
        min_seconds: the least time they take together.
        output: file for all figures as JSON.
    """
    at_least_one(rounds=rounds, repeats=repeats)
    names, chosen_shapes = chosen(contenders, CONTENDERS), chosen(shapes, SHAPES)
    cells = [Cell(w, b) for b in numbers(batches) for w in numbers(beams)]
    skipped = {name: lacks for name in names if (lacks := missing_packages(name))}
    jobs = [Job(shape, name) for shape in chosen_shapes for name in names if name not in skipped]
    request = {"cells": cells, "repeats": repeats, "min_seconds": min_seconds}
    measurements, failed = measure_all(jobs, rounds, request)
    figures = figures_of(measurements)
    for shape in chosen_shapes:
        print(f"\n{table(figures, shape, names, cells)}")
    about = {"command": command(), "machine": machine(), "versions": versions(*PACKAGES)}
    print("", notes(about, skipped, failed), sep="\n")
    if output:
        missing = {"skipped": skipped, "failed": {" ".join(job): failed[job] for job in failed}}
        result = about | missing | {"figures": as_json(figures)}
        write_whole(output, json.dumps(result, indent=1) + "\n")
    if failed:
        sys.exit(1)


def measure_all(
    jobs: Sequence[Job], rounds: int, request: dict[str, Any]
) -> tuple[list[Measurement], dict[Job, str]]:
    """Builds all jobs' files, then measures each job once a round.

    Returns:
        what was measured, and why jobs failed.
    """
    with tempfile.TemporaryDirectory() as folder:

        def build(job: Job) -> Iterator[Measurement]:
            return work("build", job, folder, request)

        def measure(job: Job) -> Iterator[Measurement]:
            return work("measure", job, folder, request)

        steps = [("build", build), *((name, measure) for name in rounds_of(rounds))]
        return in_turn(jobs, steps, describe)


def describe(found: Measurement) -> str:
    """A line of progress."""
    return f"{found.cell}: {tokens_per_second(found):,.0f} tokens/s"


if __name__ == "__main__":
    command_line.run(main)
