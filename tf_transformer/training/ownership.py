"""Ownership of a run's folder: one training run at a time, which removes its files if it fails."""

import contextlib
from collections.abc import Iterator

from tf_transformer.errors import InputError
from tf_transformer.files.locks import FileLock
from tf_transformer.run.folder import RunFolder


@contextlib.contextmanager
def owned(folder: RunFolder) -> Iterator[None]:
    """Locks a run's folder in a block, and makes the folder if it is missing.

    A block that fails before its first result removes the files that it has written. A result is a
    checkpoint, or the metrics of a validation after an update.
    """
    new_folders = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.lock)
    except BlockingIOError as error:
        raise InputError(
            f"another training run is active in {folder.path}. Wait for its end, or give another "
            "--run_dir."
        ) from error
    except OSError as error:
        raise InputError(
            f"--run_dir {folder.path} cannot be made or written: {error}. Give a folder that can "
            "be written."
        ) from error
    before = folder.start_mark
    try:
        yield
    except BaseException:
        has_result = any(row["step"] for row in folder.load_metrics())
        if folder.start_mark not in ("", before) and not has_result:
            folder.clear()
            folder.starting.unlink(missing_ok=True)
        raise
    finally:
        lock.release()
        for path in new_folders:
            with contextlib.suppress(OSError):  # the folder is not empty
                path.rmdir()
