"""Lines in, whole files out."""

import gzip
import itertools
import os
import pathlib
from collections.abc import Iterator

from tf_transformer.errors import InputError


def read_lines(path: str | os.PathLike) -> Iterator[bytes]:
    """The lines of a plain or .gz file, split on newline bytes only, without them.

    `str.splitlines` would also split on U+0085, U+2028 and more, and shift every pair after.
    A carriage return before the newline goes too.

    Raises:
        InputError: when the file does not exist or is not a file, or a .gz file is broken.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file. Check the path.")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for line in lines:
                yield line.removesuffix(b"\n").removesuffix(b"\r")
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path} is not a whole gzip file: {error}") from error


def read_aligned(*paths: str | os.PathLike) -> Iterator[tuple[bytes, ...]]:
    """Line n of each file, together; see `read_lines`.

    Raises:
        InputError: as `read_lines`, and when the files have different numbers of lines.
    """
    for number, lines in enumerate(itertools.zip_longest(*map(read_lines, paths))):
        if None in lines:
            shorter = paths[lines.index(None)]
            longer = next(path for path, line in zip(paths, lines, strict=True) if line is not None)
            raise InputError(
                f"{shorter} ends after line {number:,} but {longer} goes on: line n of one must "
                "belong to line n of the other. Give files of equal length."
            )
        yield lines


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Writes a file, and its folder, under its final name only once all of it is on disk."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    partial.replace(path)


def one_line(text: str) -> str:
    """The text without newlines, which a model can spell byte by byte: a line out is a line."""
    return text.replace("\n", " ")
