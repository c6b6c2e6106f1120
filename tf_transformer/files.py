"""Reads lines, writes complete files."""

import gzip
import itertools
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from tf_transformer.errors import InputError


def read_lines(path: str | os.PathLike) -> Iterator[bytes]:
    """The lines of a plain or .gz file; see `split_lines`.

    Raises:
        InputError: when the file does not exist or is not a file, or a .gz file is broken.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file. Check the path.")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from split_lines(file)
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path} is not a whole gzip file: {error}") from error


def split_lines(file: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of an open binary file, without the newline and a carriage return before it.

    Only newline bytes end a line. `str.splitlines` would also split on U+0085, U+2028 and more,
    and misalign all lines after them.
    """
    return (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)


def read_aligned(*paths: str | os.PathLike) -> Iterator[tuple[bytes, ...]]:
    """Line n of each file, together; see `read_lines`.

    Raises:
        InputError: as `read_lines`, and when the files have different numbers of lines.
    """
    return align(paths, [read_lines(path) for path in paths])


def align(
    names: Sequence[str | os.PathLike], files: Sequence[Iterable[bytes]]
) -> Iterator[tuple[bytes, ...]]:
    """Line n of each iterable, together.

    Args:
        names: of the files, for the error.
        files: the lines of each.

    Raises:
        InputError: when the files have different numbers of lines.
    """
    for number, lines in enumerate(itertools.zip_longest(*files)):
        if None in lines:
            shorter = names[lines.index(None)]
            longer = next(name for name, line in zip(names, lines, strict=True) if line is not None)
            raise InputError(
                f"{shorter} ends after line {number:,} but {longer} goes on: line n of one must "
                "belong to line n of the other. Give files of equal length."
            )
        yield lines


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Writes a file and creates its folder; the file gets its name when it is complete."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    partial.replace(path)


def one_line(text: str) -> str:
    """Replaces newlines, which a model can produce, so that the text is one line of a file."""
    return text.replace("\n", " ")
