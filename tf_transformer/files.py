"""Reads lines, writes complete files."""

import codecs
import gzip
import itertools
import os
import pathlib
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import AnyStr

from tf_transformer.errors import InputError

_HEAD = 4096  # bytes that show the encoding


def read_lines(path: str | os.PathLike) -> Iterator[bytes]:
    """The lines of a plain or .gz file; see `split_lines`.

    Raises:
        InputError: when the file does not exist or is not a file, is UTF-16, or a .gz file is
            broken.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file. Check the path.")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            if _is_utf16(file.peek(_HEAD)[:_HEAD]):
                raise InputError(
                    f"{path} is UTF-16; expected UTF-8. Convert it, for example: "
                    f"iconv -f UTF-16 -t UTF-8 {path} > {path}.utf8"
                )
            yield from split_lines(file)
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path} is not a whole gzip file: {error}") from error


def _is_utf16(head: bytes) -> bool:
    """Whether text starts with a byte-order mark of UTF-16, or every other byte is mostly 0."""
    zeros = head[::2].count(0), head[1::2].count(0)
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (
        len(head) > 3 and min(zeros) == 0 and 4 * max(zeros) > len(head)
    )


def split_lines(file: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of an open binary file, without the newline and a carriage return before it.

    Only newline bytes end a line. `str.splitlines` would also split on U+0085, U+2028 and more,
    and misalign all lines after them.
    """
    return (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)


def decode(lines: Iterable[bytes], name: str | os.PathLike) -> Iterator[str]:
    """The lines of a file as texts, one for each line.

    Bytes that are not UTF-8 become U+FFFD; the first line with such bytes gives a warning on
    stderr.
    """
    warned = False
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            text = line.decode("utf-8", "replace")
            if not warned:
                print(
                    f"warning: {name} is not UTF-8: line {number:,} has the byte "
                    f"0x{line[error.start]:02x}. Bytes that are not UTF-8 are read as U+FFFD. "
                    "Convert the file to UTF-8, for example with iconv -f LATIN1 -t UTF-8.",
                    file=sys.stderr,
                )
                warned = True
        yield text


def read_texts(*paths: str | os.PathLike) -> list[list[str]]:
    """All lines of files as texts: a list for each file; see `decode`.

    Raises:
        InputError: as `read_aligned`, and when there is no line.
    """
    rows = list(align(paths, [decode(read_lines(path), path) for path in paths]))
    if not rows:
        files = " and ".join(map(str, paths))
        raise InputError(f"expected at least one line, but nothing is in {files}.")
    return [list(column) for column in zip(*rows, strict=True)]


def read_aligned(*paths: str | os.PathLike) -> Iterator[tuple[bytes, ...]]:
    """Line n of each file, together; see `read_lines`.

    Raises:
        InputError: as `read_lines`, and when the files have different numbers of lines.
    """
    return align(paths, [read_lines(path) for path in paths])


def align(
    names: Sequence[str | os.PathLike], files: Sequence[Iterable[AnyStr]]
) -> Iterator[tuple[AnyStr, ...]]:
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
            ends = f"ends after line {number:,}" if number else "is empty"
            raise InputError(
                f"{shorter} {ends} but {longer} goes on: line n of one must "
                "belong to line n of the other. Give files of equal length."
            )
        yield lines


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Writes a file and creates its folder; the file gets its name when it is complete."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")  # not another's
    try:
        with partial.open("xb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def one_line(text: str) -> str:
    """Replaces newlines, which a model can produce, so that the text is one line of a file."""
    return text.replace("\n", " ")
