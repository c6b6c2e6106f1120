"""Locks on files that end with the process that holds them."""

import contextlib
import fcntl
import os
import pathlib


class FileLock:
    """An exclusive lock on a file; the kernel drops it when the process ends, however it ends.

    The file is made when it is missing, and may hold something. On a file system without locks
    nothing is locked.

    Args:
        path: the file.

    Raises:
        BlockingIOError: when the file is locked already, by any process.
        OSError: when the file cannot be made.
    """

    def __init__(self, path: str | os.PathLike):
        self._path = pathlib.Path(path)
        while not self._try():  # the holder may remove the file between opening and locking
            pass

    def _try(self) -> bool:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise
        except OSError:
            return True  # the file system has no locks
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                return True
        os.close(self._descriptor)
        return False

    def write(self, content: bytes) -> None:
        """Replaces the content of the file."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, content, 0)

    def release(self, remove: bool = True) -> None:
        """Gives up the lock, and removes the file or leaves it."""
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
