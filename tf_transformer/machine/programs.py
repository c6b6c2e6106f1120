"""Modules that run as programs in processes of their own, with JSON in and out."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def run_program(module: str, work: Mapping[str, Any], timeout: float) -> Any:
    """The JSON in the last line that a module prints, given `work` as JSON on stdin.

    Args:
        module: its name, for python -m.
        work: what JSON can represent.
        timeout: seconds.

    Raises:
        RuntimeError: when the program fails or takes longer, with the last line that it wrote.
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
