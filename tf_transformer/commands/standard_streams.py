"""Standard input, output and error of a program: closed, full, or of another encoding.

Imports nothing of this project, because programs run it by its path.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator

# What the user can correct; other errors of the system are defects and keep their traceback.
_OF_THE_MACHINE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EBADF),
    *(errno.EACCES, errno.EPERM),
}


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Reports what is wrong with the streams, or with a file, in a sentence; exits with status 1.

    A reader of the output that has read enough, like `head`, ends the program quietly. Characters
    that a terminal cannot show are escaped.
    """
    _open_closed_ones()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        except SystemExit as end:
            if not end.code:
                sys.stdout.flush()
            raise
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _OF_THE_MACHINE:
            raise
        _discard_output()
        if error.errno == errno.EBADF:
            sys.exit("error: standard input or standard output is closed.")
        place = error.filename or "the output cannot be written"
        sys.exit(f"error: {place}: {error.strerror}.")


def _open_closed_ones() -> None:
    """Replaces closed streams, so that no other file gets their numbers.

    Reading and writing still fail, but messages for a closed standard error are lost.
    """
    modes = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for name, mode in modes.items():
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, mode)
            stream = os.fdopen(descriptor, "r" if name == "stdin" else "w")
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _discard_output() -> None:
    """Python flushes the streams at its end, which would raise the error again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
