"""Contenders take turns, so that a slow minute of the machine is not one contender's alone."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from processes import Job, WorkerError

Found = TypeVar("Found")
Step = tuple[str, Callable[[Job], Iterable[Found]]]  # its name, and what it finds for a job


def in_turn(
    jobs: Sequence[Job], steps: Sequence[Step[Found]], describe: Callable[[Found], str]
) -> tuple[list[Found], dict[Job, str]]:
    """Does each step for all jobs, one after the other, and says so line by line.

    A job that fails is not tried again; the others go on.

    Args:
        jobs: who takes part.
        steps: what to do, in order.
        describe: the line that reports a finding.

    Returns:
        what was found, and why jobs failed.
    """
    findings: list[Found] = []
    failed: dict[Job, str] = {}
    for step, work in steps:
        for job in (job for job in jobs if job not in failed):
            try:
                for found in work(job):
                    show(step, job, describe(found))
                    findings.append(found)
            except WorkerError as error:
                failed[job] = str(error)
                show(step, job, f"failed: {error}")
    return findings, failed


def side_by_side(
    jobs: Sequence[Job], work: Callable[[Job], Iterable[Found]]
) -> tuple[dict[Job, list[Found]], dict[Job, str]]:
    """Takes one finding of each job, then the next of each, until none has more.

    Args:
        jobs: who takes part; all are under way at once, but one at a time does something.
        work: finds something for a job whenever it is asked to.

    Returns:
        what was found for each job, and why others failed.
    """
    findings: dict[Job, list[Found]] = {job: [] for job in jobs}
    failed: dict[Job, str] = {}
    running = {job: iter(work(job)) for job in jobs}
    while running:
        for job in list(running):
            try:
                findings[job].append(next(running[job]))
            except StopIteration:
                del running[job]
            except WorkerError as error:
                failed[job] = str(error)
                del running[job], findings[job]
    return findings, failed


def rounds_of(number: int) -> list[str]:
    """Names of the rounds."""
    return [f"round {i} of {number}" for i in range(1, number + 1)]


def show(step: str, job: Job, what: str) -> None:
    """Prints a line of progress."""
    print(f"{step}: {job.shape} {job.contender}: {what}", file=sys.stderr, flush=True)
