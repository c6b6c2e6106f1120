"""Starts workers, one at a time, and reads what they measured."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from contenders import CONTENDERS
from report import Measurement
from worker import MARK
from workload import Cell

_PROGRAM = pathlib.Path(__file__).with_name("worker.py")


class WorkerError(RuntimeError):
    """A worker ended with an error; the text is its last line."""


class Job(NamedTuple):
    """What a worker is started for."""

    shape: str
    contender: str


def work(step: str, job: Job, folder: str, request: dict[str, Any]) -> Iterator[Measurement]:
    """Runs a worker; gives each cell as it is measured.

    Args:
        step: build, which makes a contender's files and measures nothing, or measure.
        job: shape and contender.
        folder: for the files of all jobs.
        request: cells, repeats and min_seconds.

    Raises:
        WorkerError: when the worker fails.
    """
    for line in _lines(step, job, folder, request):
        if line.startswith(MARK):
            found = json.loads(line.removeprefix(MARK))
            yield Measurement(*job, Cell(*found["cell"]), found["sentences"], found["seconds"])


def _lines(step: str, job: Job, folder: str, request: dict[str, Any]) -> Iterator[str]:
    """Lines that a worker prints, as they come."""
    command = [sys.executable, str(_PROGRAM), step, job.contender, job.shape, folder]
    # No contender sees a GPU: the comparison is one of processors.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    environment |= CONTENDERS[job.contender].environment
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            [*command, json.dumps(request)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        yield from process.stdout or ()
        if process.wait():
            errors.seek(0)
            written = [line.strip() for line in errors if line.strip()]
            said = written[-1] if written else f"exit status {process.returncode}"
            raise WorkerError(said)
