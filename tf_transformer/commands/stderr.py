"""Hides the notices of libraries from the standard error of a command.

TensorFlow and other libraries write notices to file descriptor 2, and no environment variable
silences them. This module imports nothing from the project, because programs run it by its path.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

# TensorFlow's lines of levels I and W, and its errors on a machine without a GPU.
_NOTICE = (
    rb"WARNING: All log messages before absl|To enable the following instructions"
    rb"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    rb"|E\d{4} .*(failed call to cuInit|Unable to register cu|placer already registered)"
)
# Keeps the last remaining lines until this process ends or kills the keeper.
_KEEP_LAST_LINES = f"""
import collections, re, sys
lines = (line for line in sys.stdin.buffer if not re.match({_NOTICE!r}, line))
sys.stderr.buffer.writelines(collections.deque(lines, maxlen=1000))
"""


@contextlib.contextmanager
def without_notices() -> Iterator[None]:
    """Hides file descriptor 2 in a block; Python's `sys.stderr` prints as usual.

    Another process keeps the hidden lines. It prints all lines except known notices when the block
    raises an `Exception`, or when this process dies, for example in TensorFlow. It prints nothing
    for a `BrokenPipeError`. The block hides nothing when TF_CPP_MIN_LOG_LEVEL is 0 or 1, or when
    `sys.stderr` has been replaced.
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
