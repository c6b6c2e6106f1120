"""Reads lines of text from files and pipes."""

import atexit
import functools
import itertools
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import AnyStr, BinaryIO

from tf_transformer.errors import InputError
from tf_transformer.files import text_lines, xml_text

_COPIES: dict[str, tuple[tuple[int, ...], BinaryIO]] = {}  # copies of pipes, by path
PATTERN = frozenset("*?[]\\")  # characters that TensorFlow takes as a pattern


def read_lines(path: str | os.PathLike) -> Iterator[bytes]:
    """Reads the lines of a text file or a pipe, plain or compressed, as bytes without their ends.

    The first read of a pipe copies it, so that it can be read again. `text_lines` has the rules.

    Raises:
        InputError: if the file cannot be read, or is not text in UTF-8.
    """
    try:
        yield from lines_of(_chunks(path), path)
    except OSError as error:
        raise unreadable(path, error) from error


def read_xml(path: str | os.PathLike) -> Iterator[bytes]:
    """Reads an XML file or a pipe in pieces of UTF-8, from any encoding that it names."""
    try:
        pieces = xml_text.as_utf8(text_lines.decompressed(_chunks(path), path), path)
        yield from text_lines.checked(pieces, path)
    except OSError as error:
        raise unreadable(path, error) from error
    except text_lines.TextError as error:
        raise InputError(str(error)) from error


def lines_of(chunks: Iterable[bytes], name: str | os.PathLike) -> Iterator[bytes]:
    """Makes lines from the bytes of a text; see `text_lines`. Errors have its name."""
    try:
        yield from text_lines.lines_of(chunks, name)
    except text_lines.TextError as error:
        raise InputError(str(error)) from error


def read_whole(path: str | os.PathLike) -> bytes:
    """Reads the bytes of a document as they are; raises as `read_lines`."""
    return b"".join(read_pieces(path))


def read_pieces(path: str | os.PathLike) -> Iterator[bytes]:
    """Reads the bytes of a file as they are, piece by piece; raises as `read_lines`."""
    try:
        yield from _chunks(path)
    except OSError as error:
        raise unreadable(path, error) from error


def check_file(path: str | os.PathLike) -> None:
    """Raises an `InputError` if a file cannot be opened. Pipes are not opened."""
    try:
        if not _is_pipe(path):
            open(path, "rb").close()
    except OSError as error:
        raise unreadable(path, error) from error


def split_paths(paths: str) -> list[str]:
    """Divides an option into paths at commas. If a file has this name, the option is one path."""
    if os.path.exists(paths):
        return [paths]
    return [path for path in map(str.strip, paths.split(",")) if path]


def _chunks(path: str | os.PathLike) -> Iterator[bytes]:
    if _is_pipe(path):
        copy, place = _copy(os.path.abspath(path)), 0
        # Several readers may read a copy at the same time, each from its start.
        while chunk := os.pread(copy.fileno(), text_lines.CHUNK, place):
            place += len(chunk)
            yield chunk
    else:
        with open(path, "rb") as file:
            yield from text_lines.chunks_of(file)


def _is_pipe(path: str | os.PathLike) -> bool:
    """Whether a path is a pipe or a device, which can only be read once."""
    mode = os.stat(path).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _copy(path: str) -> BinaryIO:
    """Returns the copy of a pipe, and makes it on the first call."""
    if path not in _COPIES or _COPIES[path][0] != _identity(path):
        copy = tempfile.TemporaryFile()  # noqa: SIM115  open until the process ends
        with open(path, "rb") as pipe:
            shutil.copyfileobj(pipe, copy)
        copy.flush()
        _COPIES[path] = _identity(path), copy
    return _COPIES[path][1]


def _identity(path: str) -> tuple[int, ...]:
    """Identifies a pipe, to tell it from an earlier pipe with this name."""
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_mtime_ns


def unreadable(path: str | os.PathLike, error: OSError) -> InputError:
    """Makes the error for a file that cannot be read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return InputError(f"{path} is not a file. Check the path.")
    return InputError(f"{path} cannot be read: {error.strerror}.")


def decode(lines: Iterable[bytes], name: str | os.PathLike) -> Iterator[str]:
    """Decodes the lines of a file, with U+FFFD for invalid bytes.

    The first line with invalid bytes gives a warning on stderr, with the name of the file.
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
    """Reads all lines of files, at least one, as a list of texts for each file; see `align`."""
    rows = list(align(paths, [decode(read_lines(path), path) for path in paths]))
    if not rows:
        files = " and ".join(map(str, paths))
        raise InputError(f"expected at least one line, but nothing is in {files}.")
    return [list(column) for column in zip(*rows, strict=True)]


def read_aligned(*paths: str | os.PathLike) -> Iterator[tuple[bytes, ...]]:
    """Reads files in parallel and makes tuples of their lines n; see `read_lines` and `align`."""
    return align(paths, [read_lines(path) for path in paths])


def align(
    names: Sequence[str | os.PathLike], files: Sequence[Iterable[AnyStr]]
) -> Iterator[tuple[AnyStr, ...]]:
    """Makes tuples of line n of each file; an `InputError` names files of different lengths."""
    for number, lines in enumerate(itertools.zip_longest(*files)):
        if None in lines:
            shorter = names[lines.index(None)]
            longer = next(name for name, line in zip(names, lines, strict=True) if line is not None)
            ends = f"ends after line {number:,}" if number else "is empty"
            raise InputError(
                f"{shorter} {ends}, but {longer} has more lines. Line n of one file must belong to "
                "line n of the other. Give files with equal numbers of lines."
            )
        yield lines


def literal(folder: str | os.PathLike) -> str:
    """Returns a path that TensorFlow reads literally: the path of the folder, or of a link to it.

    TensorFlow treats the paths of checkpoints as UTF-8 and as patterns, which cannot be escaped.
    """
    path = os.fspath(folder)
    is_utf8 = os.fsencode(path) == path.encode("utf-8", "replace")
    plain = is_utf8 and not PATTERN.intersection(path)
    return path if plain else _link_to(os.path.abspath(path))


@functools.cache
def _link_to(path: str) -> str:
    folder = tempfile.TemporaryDirectory(prefix="tf_transformer-")
    atexit.register(folder.cleanup)  # without this reference, the folder would be removed now
    link = os.path.join(folder.name, "folder")
    os.symlink(path, link)
    return link
