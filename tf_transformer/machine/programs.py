"""Runs modules as programs in separate processes, with JSON as input and output."""

import json
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
