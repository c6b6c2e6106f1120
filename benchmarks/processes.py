"""Starts workers and reads what they measured."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

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
    arguments = [step, job.contender, job.shape, folder, json.dumps(request)]
    for found in run_worker(_PROGRAM, arguments, CONTENDERS[job.contender].environment):
        yield Measurement(*job, Cell(*found["cell"]), found["sentences"], found["seconds"])


def run_worker(
    program: pathlib.Path,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    requests: int = 0,
) -> Iterator[dict[str, Any]]:
    """Runs a program; gives what it reports, as it comes.

    Args:
        program: prints lines of JSON that start with `MARK`, among others.
        arguments: its own.
        variables: added to its environment.
        requests: how many lines the program is sent, each when the next report is asked for; one
            comes without.

    Raises:
        WorkerError: when it fails.
    """
    # No contender sees a GPU: the comparison is one of processors.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", **variables}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env=environment,
            stdin=subprocess.PIPE if requests else None,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        for line in process.stdout or ():
            if line.startswith(MARK):
                yield json.loads(line.removeprefix(MARK))
                requests -= 1
                _request(process.stdin, last=requests < 0)
        if process.wait():
            errors.seek(0)
            written = [line.strip() for line in errors if line.strip()]
            said = written[-1] if written else f"exit status {process.returncode}"
            raise WorkerError(said)


def _request(requests: IO[str] | None, last: bool) -> None:
    """Asks for one more report, or says that there is nothing more to ask for."""
    if requests is None or requests.closed:
        return
    with contextlib.suppress(BrokenPipeError):
        if not last:
            print(file=requests, flush=True)
            return
    with contextlib.suppress(BrokenPipeError):  # nobody reads any more: the exit status tells why
        requests.close()
