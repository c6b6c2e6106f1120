"""Lets systems take turns, so that a slow minute of the machine affects all systems."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from benchmarks.harness.processes import ProcessError

Found = TypeVar("Found")


class Job(NamedTuple):
    """A system to measure with a shape."""

    shape: str
    system: str


Step = tuple[str, Callable[[Job], Iterable[Found]]]  # its name, and its results for a job


def in_turn(
    jobs: Sequence[Job], steps: Sequence[Step[Found]], describe: Callable[[Found], str]
) -> tuple[list[Found], dict[Job, str]]:
    """Makes each step for all jobs, one job at a time, and prints each result.

    A job that fails is left out of later steps. All further jobs continue.

    Args:
        jobs: systems and shapes.
        steps: the steps in order.
        describe: function from a result to the line to print.

    Returns:
        all results, and the reason for each failure.
    """
    results: list[Found] = []
    failed: dict[Job, str] = {}
    for step, work in steps:
        for job in (job for job in jobs if job not in failed):
            try:
                for result in work(job):
                    show(step, job, describe(result))
                    results.append(result)
            except ProcessError as error:
                failed[job] = str(error)
                show(step, job, f"failed: {error}")
    return results, failed


def interleaved(
    jobs: Sequence[Job], work: Callable[[Job], Iterable[Found]]
) -> tuple[dict[Job, list[Found]], dict[Job, str]]:
    """Takes the first result of each job, then the second of each, and so on.

    Args:
        jobs: systems and shapes. All their processes exist at once, but only one computes.
        work: function from a job to its results, which are made on demand.

    Returns:
        the results of each job, and the reason for each failure.
    """
    results: dict[Job, list[Found]] = {job: [] for job in jobs}
    failed: dict[Job, str] = {}
    running = {job: iter(work(job)) for job in jobs}
    while running:
        for job in list(running):
            try:
                results[job].append(next(running[job]))
            except StopIteration:
                del running[job]
            except ProcessError as error:
                failed[job] = str(error)
                del running[job], results[job]
    return results, failed


def rounds_of(number: int) -> list[str]:
    """Names of the rounds."""
    return [f"round {i} of {number}" for i in range(1, number + 1)]


def show(step: str, job: Job, text: str) -> None:
    """Prints a line of progress."""
    print(f"{step}: {job.shape} {job.system}: {text}", file=sys.stderr, flush=True)
