"""Runs commands, and modules with JSON as input and output, in separate processes."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any


def run_program(module: str, work: Mapping[str, Any], timeout: float) -> Any:
    """Runs a module as a program with `work` as JSON on its stdin.

    Returns the value of the JSON in the last line that it prints. If it fails, or takes longer than
    `timeout` seconds, a `RuntimeError` has the last line on its stderr.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(work).encode(),
            capture_output=True,
            check=True,
            timeout=timeout,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        lines = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else str(error)) from error
    return json.loads(done.stdout.splitlines()[-1])


def run_command(*words: str, environment: Mapping[str, str] = {}) -> int:
    """Runs `tf-transformer` with words in a new process, and returns its exit status.

    All its output goes to stderr. The process finds the package uninstalled, too. A signal that
    stops this process is passed on, so that the command can save its work before it ends.

    Args:
        words: the name of a command, and its options.
        environment: variables that the process has besides the variables of this process.
    """
    place = str(pathlib.Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [place, os.environ.get("PYTHONPATH")]))
    of_python = {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}  # no modules of the working folder
    process = subprocess.Popen(
        [sys.executable, "-m", "tf_transformer.commands.main", *words],
        env={**os.environ, **of_python, **environment},
        stdout=sys.stderr,
        stderr=sys.stderr,
        start_new_session=True,  # else it would get Ctrl-C twice
    )
    with _passing_signals_to(process):
        status = process.wait()
    return status if status >= 0 else 128 - status  # as a shell says it


@contextlib.contextmanager
def _passing_signals_to(process: subprocess.Popen) -> Iterator[None]:
    """Passes signals that would stop this process on to another one in a block."""
    usual = (signal.SIG_DFL, signal.default_int_handler)
    caught = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()  # Python allows no others
        if signal.getsignal(number) in usual
    ]
    before = {
        number: signal.signal(number, lambda number, _: process.send_signal(number))
        for number in caught
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
