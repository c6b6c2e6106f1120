"""Compares the speed of translation: python benchmarks/decode.py [--shapes tiny] [--output FILE].

README.md beside this file says what is measured and how to read it.
"""

import functools
import json
import sys
import tempfile
from collections.abc import Collection, Sequence
from typing import Any

from contenders import CONTENDERS, missing_packages
from environment import command, machine, versions
from processes import Job, WorkerError, work
from report import Measurement, as_json, figures_of, notes, table, tokens_per_second
from workload import SHAPES, Cell

from tf_transformer import command_line
from tf_transformer.errors import InputError
from tf_transformer.files import write_whole


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
    about = {"command": command(), "machine": machine(), "versions": versions()}
    print("", notes(about, skipped, failed), sep="\n")
    if output:
        missing = {"skipped": skipped, "failed": {" ".join(job): failed[job] for job in failed}}
        result = about | missing | {"figures": as_json(figures)}
        write_whole(output, json.dumps(result, indent=1) + "\n")
    if failed:
        sys.exit(1)


def chosen(text: str, known: Collection[str]) -> list[str]:
    """Names with commas between them.

    Raises:
        InputError: for a name that is not known.
    """
    names = text.split(",")
    for name in names:
        if name not in known:
            raise InputError(f"unknown name {name!r}; expected some of {', '.join(known)}.")
    return names


def numbers(text: str) -> list[int]:
    """Positive integers with commas between them.

    Raises:
        InputError: for anything else.
    """
    values = text.split(",")
    for value in values:
        if not value.isdecimal() or not int(value):
            raise InputError(f"expected positive numbers, like 1,32, got {text!r}.")
    return [int(value) for value in values]


def at_least_one(**values: int) -> None:
    """Refuses numbers below 1.

    Raises:
        InputError: naming the first of them.
    """
    for name, value in values.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}.")


def measure_all(
    jobs: Sequence[Job], rounds: int, request: dict[str, Any]
) -> tuple[list[Measurement], dict[Job, str]]:
    """Builds all jobs' files, then measures each job once a round.

    So a slow minute of the machine falls on a part of each contender's calls, not on all calls
    of one. A job that fails is not tried again; the others go on.

    Returns:
        what was measured, and why jobs failed.
    """
    steps = ["build"] + ["measure"] * rounds
    measurements: list[Measurement] = []
    failed: dict[Job, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, step in enumerate(steps):
            for job in (job for job in jobs if job not in failed):
                say = functools.partial(
                    show, f"round {number} of {rounds}" if number else step, job
                )
                try:
                    for found in work(step, job, folder, request):
                        say(f"{found.cell}: {tokens_per_second(found):,.0f} tokens/s")
                        measurements.append(found)
                except WorkerError as error:
                    failed[job] = str(error)
                    say(f"failed: {error}")
    return measurements, failed


def show(step: str, job: Job, what: str) -> None:
    """Prints a line of progress."""
    print(f"{step}: {job.shape} {job.contender}: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    command_line.run(main)
