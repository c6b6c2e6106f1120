"""Processes that call functions for a benchmark, each with its own environment."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.worker import MARK

_ROOT = pathlib.Path(__file__).parents[2]
_PROGRAM = [sys.executable, "-m", "benchmarks.harness.worker"]


class ProcessError(RuntimeError):
    """A process ended; the text is the name of the signal, or the last line of its stderr."""


class Process:
    """A Python process that calls functions by name. Use it in a with statement.

    Args:
        environment: variables to add.

    Example:
        >>> with Process({"OMP_NUM_THREADS": "1"}) as process:
        ...     process.call("math:sqrt", x=4)
    """

    def __init__(self, environment: Mapping[str, str] | None = None):
        # All comparisons are of processors: no system may use a GPU.
        self._environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"} | dict(environment or {})

    def __enter__(self) -> "Process":
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process: Any = subprocess.Popen(
            _PROGRAM,
            cwd=_ROOT,
            env=self._environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()

    def call(self, place: str, **arguments: Any) -> Any:
        """The result of a function.

        Args:
            place: the function, as module:name.
            **arguments: keyword arguments that JSON can represent.

        Raises:
            ProcessError: when the process ends instead.
        """
        with contextlib.suppress(BrokenPipeError):  # the exit status is reported below
            print(json.dumps([place, arguments]), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith(MARK):
                return json.loads(line.removeprefix(MARK))
        status = self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors if line.strip()]
        if status < 0:  # a library's last notice would not say why
            raise ProcessError(f"ended by {signal.Signals(-status).name}")
        raise ProcessError(lines[-1] if lines else f"exit status {status}")


def call(place: str, **arguments: Any) -> Any:
    """The result of a function in a fresh process; see `Process.call`."""
    with Process() as process:
        return process.call(place, **arguments)
