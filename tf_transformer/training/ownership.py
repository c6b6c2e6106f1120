"""The owner of a run's folder: one training at a time, which removes its own files if it fails."""

import contextlib
from collections.abc import Iterator

from tf_transformer.errors import InputError
from tf_transformer.files.locks import FileLock
from tf_transformer.run.folder import RunFolder


@contextlib.contextmanager
def owned(folder: RunFolder) -> Iterator[None]:
    """Locks a run's folder in a block, and makes it when it is missing.

    A block that fails before it has a result removes the files of the run that it has written. A
    checkpoint or the metrics of a validation are a result.

    Raises:
        InputError: when another training owns the folder, or it cannot be written.
    """
    new_folders = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    lock = _lock(folder)
    before = folder.start_mark
    try:
        yield
    except BaseException:
        if folder.start_mark not in ("", before) and not folder.metrics.exists():
            folder.clear()
            folder.starting.unlink(missing_ok=True)
        raise
    finally:
        lock.release()
        for path in new_folders:
            with contextlib.suppress(OSError):  # it holds something
                path.rmdir()


def _lock(folder: RunFolder) -> FileLock:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        return FileLock(folder.lock)
    except BlockingIOError as error:
        raise InputError(
            f"another training is running in {folder.path}. Wait for its end, or give another "
            "--run_dir."
        ) from error
    except OSError as error:
        raise InputError(f"--run_dir {folder.path} cannot be made or written: {error}") from error
