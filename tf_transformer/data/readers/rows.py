"""The rows of a corpus: all that it holds, before training leaves anything out."""

import functools
import hashlib
import itertools
import os
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.data.skipped import EMPTY, NOT_UTF8, reasons
from tf_transformer.errors import InputError
from tf_transformer.files.reading import decode, read_lines

Row = tuple[int, tuple[bytes, ...]]
"""The number of a line, and the texts of the example there, which should be UTF-8."""


@dataclass(frozen=True)
class Rows:
    """The rows of a corpus, which each pass reads again.

    Attributes:
        names: for each text of a row, the file that it comes from, for errors.
        start: starts a pass. It is given a counter of what it leaves out, by reason.
        identify: identifies the content: other texts have another identity, wherever they are.

    Example:
        >>> lines = [(1, (b"one", b"eins")), (2, (b"two", b""))]
        >>> rows = Rows(("a.en", "a.de"), lambda _: iter(lines), lambda: "1")
        >>> list(rows.stream(("source", "target")))
        [('one', 'eins')]
        >>> rows.texts()
        [['one', 'two'], ['eins', '']]
    """

    names: tuple[str, ...]
    start: Callable[[Counter[str]], Iterable[Row]]
    identify: Callable[[], str]

    def stream(self, fields: Sequence[str]) -> ExampleStream:
        """Examples to train on.

        Rows with an empty text or with bytes that are not UTF-8 are skipped and counted.
        """

        def start(skipped: Counter[str]) -> Iterator[Texts]:
            return _clean(self.start(skipped), self.names, skipped)

        return ExampleStream(tuple(fields), start, self.identify)

    def texts(self) -> list[list[str]]:
        """The texts of all rows, a list for each field; see `files.reading.decode`.

        Units without one of the languages are no rows; a warning on stderr counts them.

        Raises:
            InputError: when there is no row, or the file cannot be read.
        """
        skipped = Counter[str]()
        rows = [texts for _, texts in self.start(skipped)]
        if skipped:
            print(f"warning: {self.names[0]}: left out {reasons(skipped)}", file=sys.stderr)
        if not rows:
            raise InputError(_no_line(self.names))
        columns = zip(*rows, strict=True)
        return [
            list(decode(column, name)) for column, name in zip(columns, self.names, strict=True)
        ]


def _clean(rows: Iterable[Row], names: Sequence[str], skipped: Counter[str]) -> Iterator[Texts]:
    """Decodes rows; skips and counts those that cannot be trained on.

    Raises:
        InputError: at the end, when no example remained.
    """
    is_empty, not_utf8 = True, ""
    for number, row in rows:
        try:
            texts = tuple(text.decode("utf-8") for text in row)
        except UnicodeDecodeError as error:
            name = names[row.index(error.object)]
            not_utf8 = not_utf8 or f"{NOT_UTF8}, the first in line {number:,} of {name}"
            skipped[not_utf8] += 1
            continue
        if all(text.strip() for text in texts):
            is_empty = False
            yield texts
        else:
            skipped[EMPTY] += 1
    if is_empty:
        if skipped:
            files = " and ".join(dict.fromkeys(names))
            raise InputError(f"no example in {files} can be used: {reasons(skipped)}.")
        raise InputError(_no_line(names))


def _no_line(names: Sequence[str]) -> str:
    files = " and ".join(dict.fromkeys(names))
    return f"expected at least one line, but nothing is in {files}."


def as_line(text: str) -> bytes:
    """A text as a line in UTF-8: a space in place of each newline and a carriage return before it.

    Half of a surrogate pair, which a JSON string can have, gives bytes that are not UTF-8.
    """
    return re.sub("\r?\n", " ", text).encode("utf-8", "surrogatepass")


def content(*paths: str | os.PathLike) -> str:
    """Identifies the lines of files, whatever the files' names, times and compression.

    A pass over the files; a file that has not changed is read once in a process.
    """
    return " ".join(_hash(str(pathlib.Path(path).absolute()), _stamp(path)) for path in paths)


def _stamp(path: str | os.PathLike) -> tuple[int, int] | None:
    """Size and time of a file; a missing one is an error when it is read."""
    path = pathlib.Path(path)
    return (path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None


@functools.lru_cache(maxsize=1000)
def _hash(path: str, stamp: tuple[int, int] | None) -> str:
    lines, digest = read_lines(path), hashlib.sha256()
    while some := list(itertools.islice(lines, 1000)):
        digest.update(b"\n".join((*some, b"")))
    return digest.hexdigest()
