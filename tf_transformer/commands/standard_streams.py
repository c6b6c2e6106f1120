"""The standard streams of a program: their errors, and the notices that libraries write to them.

This module imports nothing from the project, because programs run it by its path.
"""

import contextlib
import errno
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# Errors that the user can correct. Other system errors are defects and keep their traceback.
_OF_THE_MACHINE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EBADF),
    *(errno.EACCES, errno.EPERM),
}
_CLOSED = "error: standard input or standard output is closed."
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
def standard_streams() -> Iterator[None]:
    """Reports an error of a stream or a file in one sentence, and exits with status 1.

    The program ends quietly when the reader of its output stops, like `head`. Characters that a
    terminal cannot show are escaped.
    """
    lost = _open_closed_ones()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    end: SystemExit | None = None
    try:
        try:
            yield
        except SystemExit as error:
            if error.code:
                raise
            end = error
        sys.stdout.flush()
        if lost.used:
            sys.exit(_CLOSED)
        if end:
            raise end
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _OF_THE_MACHINE:
            raise
        _discard_output()
        if error.errno == errno.EBADF:
            sys.exit(_CLOSED)
        place = error.filename or "the output cannot be written"
        sys.exit(f"error: {place}: {error.strerror}.")


class _Lost(io.RawIOBase):
    """Discards output to a closed standard output, so that the work completes."""

    used = False

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.used = True
        return len(content)


def _open_closed_ones() -> _Lost:
    """Replaces closed streams, so that no other file gets their descriptors.

    A closed standard input remains unreadable. Messages to a closed standard error are lost.
    """
    lost = _Lost()
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        os.open(os.devnull, os.O_WRONLY)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(lost), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        setattr(sys, "__stderr__", sys.stderr)  # noqa: B010  mypy takes it for a constant
    return lost


def _discard_output() -> None:
    """Discards unwritten output; Python's flush at exit would raise the error again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def without_notices() -> Iterator[None]:
    """Hides file descriptor 2, to which libraries write, in a block; `sys.stderr` prints as usual.

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
    visible, encoding = os.dup(2), getattr(stderr, "encoding", None)
    sys.stderr = os.fdopen(visible, "w", buffering=1, encoding=encoding, errors="backslashreplace")
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
