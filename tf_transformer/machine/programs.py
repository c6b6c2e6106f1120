"""Runs commands, and modules with JSON as input and output, in separate processes."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
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

    All its output goes to stderr. The process finds the package uninstalled, too.

    Args:
        words: the name of a command, and its options.
        environment: variables that the process has besides the variables of this process.
    """
    place = str(pathlib.Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [place, os.environ.get("PYTHONPATH")]))
    of_python = {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}  # no modules of the working folder
    done = subprocess.run(
        [sys.executable, "-m", "tf_transformer.commands.main", *words],
        env={**os.environ, **of_python, **environment},
        stdout=sys.stderr,
        stderr=sys.stderr,
        check=False,
    )
    return done.returncode
