"""Locks on files that end with the process that holds them."""

import contextlib
import fcntl
import os
import pathlib


class FileLock:
    """An exclusive lock on a file. The kernel releases it when the process ends in any way.

    The file is created if it is missing. Its content stays. A file system without locks locks
    nothing. A `BlockingIOError` says that a process has locked the file already.
    """

    def __init__(self, path: str | os.PathLike):
        self._path = pathlib.Path(path)
        while True:  # another process may remove the file between opening and locking
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._descriptor)
                raise
            except OSError:
                return  # the file system has no locks
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                    return
            os.close(self._descriptor)

    def write(self, content: bytes) -> None:
        """Replaces the content of the file."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, content, 0)

    def release(self, remove: bool = True) -> None:
        """Releases the lock, and removes the file if `remove` is True."""
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
