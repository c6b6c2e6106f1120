"""Keeps the notices of libraries out of the standard error of a command.

TensorFlow and others write notices to file descriptor 2 that no environment variable silences.
Imports nothing of this project, because programs run it by its path.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

# TensorFlow's lines of the levels I and W, and errors of a machine that has no GPU.
_NOTICE = (
    rb"WARNING: All log messages before absl|To enable the following instructions"
    rb"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    rb"|E\d{4} .*(failed call to cuInit|Unable to register cu|placer already registered)"
)
# Keeps the last other lines until this process ends or kills it.
_KEEP_LAST_LINES = f"""
import collections, re, sys
lines = (line for line in sys.stdin.buffer if not re.match({_NOTICE!r}, line))
sys.stderr.buffer.writelines(collections.deque(lines, maxlen=1000))
"""


@contextlib.contextmanager
def without_notices() -> Iterator[None]:
    """Hides file descriptor 2 in a block; Python's `sys.stderr` is printed as usual.

    Another process holds the hidden lines. It prints those that are no known notices when the block
    raises an `Exception`, and also when this process dies, for example because TensorFlow aborts.
    A `BrokenPipeError` ends a command quietly. Nothing is hidden when
    TF_CPP_MIN_LOG_LEVEL is 0 or 1, or when `sys.stderr` is not the process's own.
    """
    stderr = sys.stderr
    asked_for = os.environ.get("TF_CPP_MIN_LOG_LEVEL") in ("0", "1")
    if asked_for or stderr is None or stderr is not sys.__stderr__:
        yield
        return
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _KEEP_LAST_LINES],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # signals of the terminal must not end it first
    )
    visible = os.dup(2)
    sys.stderr = os.fdopen(
        visible,
        "w",
        buffering=1,
        encoding=getattr(stderr, "encoding", None),
        errors="backslashreplace",
    )
    with keeper.stdin as hidden:  # type: ignore[union-attr]
        os.dup2(hidden.fileno(), 2)
    try:
        yield
    except BrokenPipeError:
        raise
    except Exception:
        os.dup2(visible, 2)  # ends the input of the keeper
        keeper.wait()
        raise
    finally:
        keeper.kill()
        keeper.wait()
