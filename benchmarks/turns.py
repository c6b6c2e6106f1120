"""Contenders take turns: each step is done for all of them before the next one is."""

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

    So a slow minute of the machine falls on a part of each contender's calls, not on all calls
    of one. A job that fails is not tried again; the others go on.

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


def rounds_of(number: int) -> list[str]:
    """Names of the rounds."""
    return [f"round {i} of {number}" for i in range(1, number + 1)]


def show(step: str, job: Job, what: str) -> None:
    """Prints a line of progress."""
    print(f"{step}: {job.shape} {job.contender}: {what}", file=sys.stderr, flush=True)
