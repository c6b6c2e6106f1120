"""The rows of a corpus, before training skips any of them."""

import functools
import hashlib
import itertools
import os
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tf_transformer.data.examples import EMPTY, NOT_UTF8, ExampleStream, Texts, reasons
from tf_transformer.errors import InputError
from tf_transformer.files.reading import decode, read_lines

Row = tuple[int, tuple[bytes, ...]]
"""The number of a line, and the texts of its example, which should be UTF-8."""

_NEWLINE = re.compile(rb"\r?\n")


@dataclass(frozen=True)
class Rows:
    """The rows of a corpus. Each pass reads them again.

    Attributes:
        names: for each text of a row, the name of its file, for errors.
        start: starts a pass. It takes a counter, and counts skipped rows there by reason. A text
            may hold newlines; `stream` and `texts` replace each by a space.
        identify: returns a text that identifies the content. It does not depend on where the
            content is stored.

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
        """Makes a stream of examples to train on. Rows with empty or invalid texts are skipped."""

        def start(skipped: Counter[str]) -> Iterator[Texts]:
            return (texts for _, texts in self.numbered(skipped))

        return ExampleStream(tuple(fields), start, self.identify)

    def texts(self) -> list[list[str]]:
        """Reads the texts of all rows, a list for each field; see `files.reading.decode`.

        A warning on stderr counts what a pass leaves out, such as units of TMX without a language.
        If there is no row, an `InputError` is raised.
        """
        skipped = Counter[str]()
        rows = [texts for _, texts in self._lines(skipped)]
        if skipped:
            print(f"warning: {self.names[0]}: left out {reasons(skipped)}", file=sys.stderr)
        if not rows:
            raise InputError(f"expected at least one line, but nothing is in {self._files()}.")
        columns = zip(*rows, strict=True)
        return [
            list(decode(column, name)) for column, name in zip(columns, self.names, strict=True)
        ]

    def first(self, count: int) -> "Rows":
        """Selects the first rows. A pass reads no more than these."""
        return replace(
            self,
            start=lambda skipped: itertools.islice(self.start(skipped), count),
            identify=lambda: f"{self.identify()} first {count}",
        )

    def _lines(self, skipped: Counter[str]) -> Iterator[Row]:
        for number, row in self.start(skipped):
            if len(row) != len(self.names):
                raise InputError(
                    f"row {number:,} of {self.names[0]} has {len(row)} texts; expected "
                    f"{len(self.names)}."
                )
            yield number, tuple(_NEWLINE.sub(b" ", text) for text in row)

    def numbered(self, skipped: Counter[str]) -> Iterator[tuple[int, Texts]]:
        """Decodes rows, with the numbers of their lines; counts rows that training cannot use.

        It skips them. A corpus without any other row is an `InputError`.
        """
        is_empty, not_utf8 = True, ""
        for number, row in self._lines(skipped):
            try:
                texts = tuple(text.decode("utf-8") for text in row)
            except UnicodeDecodeError as error:
                name = self.names[row.index(error.object)]
                not_utf8 = not_utf8 or f"{NOT_UTF8}, the first in line {number:,} of {name}"
                skipped[not_utf8] += 1
                continue
            if all(text.strip() for text in texts):
                is_empty = False
                yield number, texts
            else:
                skipped[EMPTY] += 1
        if is_empty and skipped:
            raise InputError(f"no example in {self._files()} can be used: {reasons(skipped)}.")
        if is_empty:
            raise InputError(f"expected at least one line, but nothing is in {self._files()}.")

    def _files(self) -> str:
        return " and ".join(dict.fromkeys(self.names))


def content(*paths: str | os.PathLike, read: Callable[[str], Iterator[bytes]] = read_lines) -> str:
    """Hashes the lines of files. Names, times and compression of the files do not matter.

    It reads each file, but reads an unchanged file only once in a process. `read` reads the lines
    of a file.
    """
    hashes = []
    for path in map(pathlib.Path, paths):
        state = path.stat() if path.exists() else None  # to read a missing file is an error
        stamp = (state.st_size, state.st_mtime_ns) if state else None
        hashes.append(_hash(str(path.absolute()), stamp, read))
    return " ".join(hashes)


@functools.lru_cache(maxsize=1000)
def _hash(path: str, stamp: tuple[int, int] | None, read: Callable[[str], Iterator[bytes]]) -> str:
    lines, digest = read(path), hashlib.sha256()
    while some := list(itertools.islice(lines, 1000)):
        digest.update(b"\n".join((*some, b"")))
    return digest.hexdigest()
