"""Files that commands write. Existing files are not lost, and unfinished files have other names."""

import os
import stat
from collections.abc import Iterable, Sequence

from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

Path = str | os.PathLike


def is_stream(path: Path) -> bool:
    """Whether a path is a device, a pipe or an open file, which cannot be replaced."""
    if str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):  # may be an open file
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def require_free(
    outputs: Sequence[Path], inputs: Iterable[Path] = (), overwrite: bool = False
) -> None:
    """Raises an `InputError` for outputs that a command must not write; see `require_distinct`.

    An output must be missing, empty, a device or a pipe, unless `overwrite` allows to replace it.
    """
    require_distinct(outputs, inputs)
    for path in outputs:
        if is_stream(path):
            continue
        if os.path.isdir(path):
            raise InputError(f"{path} is a folder; expected the name of a file to write.")
        if not overwrite and os.path.exists(path) and os.path.getsize(path):
            raise InputError(
                f"{path} exists already. Move it away, give another name, or replace it with "
                "--overwrite true."
            )


def require_distinct(outputs: Sequence[Path], inputs: Iterable[Path] = ()) -> None:
    """Raises an `InputError` if an output is another output or an input."""
    files = [path for path in outputs if not is_stream(path)]
    others = [*inputs, "/dev/stdin", "/dev/stdout"]
    for number, path in enumerate(files):
        if any(_same(path, other) for other in others):
            raise InputError(
                f"{path} is also an input of this command or its standard output. Give another "
                "name for the output."
            )
        if any(_same(path, other) for other in files[:number]):
            listed = ", ".join(map(str, outputs))
            raise InputError(f"expected a different file for each output, got {listed}.")


def write_output(path: Path, content: str | bytes, overwrite: bool = False) -> None:
    """Writes a whole file after `require_free` has accepted its name, or to a device or a pipe."""
    if is_stream(path):
        with open(path, "ab") as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
    else:
        require_free([path], overwrite=overwrite)
        write_whole(os.path.realpath(path), content)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are the same file, also through links."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
