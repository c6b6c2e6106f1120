"""Files that commands write: none that exists is lost, and each is whole when it has its name."""

import os
import stat
from collections.abc import Iterable, Sequence

from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

Path = str | os.PathLike


def is_stream(path: Path) -> bool:
    """Whether a name stands for a device, a pipe or an open file: nothing there can be replaced."""
    if str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):  # perhaps of a file
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def require_free(
    outputs: Sequence[Path], inputs: Iterable[Path] = (), overwrite: bool = False
) -> None:
    """Checks the names of a command's outputs, before it works.

    An output may be missing or empty, or a device or a pipe.

    Args:
        outputs: the files.
        inputs: files that the command reads, by any name.
        overwrite: whether an output may hold something that the command will replace.

    Raises:
        InputError: for an output that is a folder or holds something, and as `require_distinct`.
    """
    require_distinct(outputs, inputs)
    for path in outputs:
        if is_stream(path):
            continue
        if os.path.isdir(path):
            raise InputError(f"{path} is a folder; expected the name of a file to write.")
        if not overwrite and _size(path):
            raise InputError(
                f"{path} exists already. Move it away, give another name, or replace it with "
                "--overwrite true."
            )


def require_distinct(outputs: Sequence[Path], inputs: Iterable[Path] = ()) -> None:
    """Raises an `InputError` for two outputs that are one file, or an output that is an input."""
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
    """Writes a whole file whose name `require_free` has accepted, or into a device or a pipe.

    Raises:
        InputError: for a name that is not free any more.
    """
    if is_stream(path):
        with open(path, "ab") as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
    else:
        require_free([path], overwrite=overwrite)
        write_whole(os.path.realpath(path), content)


def publish(partial: Path, path: Path, overwrite: bool = False) -> None:
    """Gives a complete file its name.

    Raises:
        InputError: for a name that is not free any more; the file keeps its partial name.
    """
    try:
        require_free([path], overwrite=overwrite)
    except InputError as error:
        raise InputError(f"{error} The complete output is {partial}.") from error
    os.replace(partial, os.path.realpath(path))


def _size(path: Path) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _same(one: Path, other: Path) -> bool:
    """Whether two names, through links of both kinds, are those of one file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
