"""Errors of standard input, output and error: closed, full, or with another encoding.

This module imports nothing from the project, because programs run it by its path.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

# Errors that the user can correct. Other system errors are defects and keep their traceback.
_OF_THE_MACHINE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EBADF),
    *(errno.EACCES, errno.EPERM),
}
_CLOSED = "error: standard input or standard output is closed."


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
