"""Tables: a line of tab-separated values is an example. Quotes have no meaning: tabs end values."""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines
from tf_transformer.files.text_lines import warn

_FIRST = 3  # rows that show whether a writer quotes every value
_QUOTES_ARE_TEXT = "Here they are text. Write the table without such quoting, or write JSON lines"


def read_tsv(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a table. `columns` names the columns of the texts; by default they are the first."""
    columns = corpus.columns or tuple(str(number) for number in range(1, len(fields) + 1))
    return Rows(
        (corpus.path,) * len(fields),
        lambda _: table_rows(corpus.path, columns),
        lambda: f"tsv {content(corpus.path)} {columns}",
    )


def stream_table(
    path: str | os.PathLike,
    columns: Sequence[str],
    fields: Sequence[str],
    convert: Callable[[Texts], Texts],
) -> ExampleStream:
    """Makes a stream of examples from a table. `convert` makes the texts of each from its values.

    A pass raises the errors of `table_rows`. It also raises an `InputError` with file and line if a
    value is not UTF-8, or if `convert` raises a `ValueError`.
    """
    columns = tuple(columns)

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        for number, row in table_rows(str(path), columns):
            try:
                yield convert(tuple(value.decode("utf-8") for value in row))
            except UnicodeDecodeError as error:
                raise InputError(f"line {number:,} of {path} is not UTF-8: {error}.") from error
            except ValueError as error:
                raise InputError(f"line {number:,} of {path}: {error}") from error

    return ExampleStream(tuple(fields), start, lambda: f"table {content(path)} {columns}")


def table_rows(path: str, columns: Sequence[str]) -> Iterator[Row]:
    """Reads some columns of each line.

    The columns are names, which the first line has; or numbers from 1 on, if the first line is a
    row. A warning on stderr names the first row that seems to have other values than its writer
    meant: values in the quotes of CSV, or more values than the first line. Another one says that
    the first rows have every value in quotation marks. A missing file, no rows, no such column or
    two of them, and a row with too few columns are an `InputError`.
    """
    lines = enumerate(read_lines(path), 1)
    has_header = not all(column.isdecimal() and int(column) for column in columns)
    if has_header:
        header = next(lines, (0, b""))[1].decode("utf-8", "replace").split("\t")
        places = [_place(name, header, path) for name in columns]
    else:
        header = []
        places = [int(number) - 1 for number in columns]
    first = list(itertools.islice(lines, _FIRST))
    number, width = 0, len(header)
    if doubt := _quoting([line.split(b"\t") for _, line in first], places):
        warn(f"warning: {path} has {doubt}.")
    for number, line in itertools.chain(first, lines):
        row = line.split(b"\t")
        width = width or len(row)
        if len(row) <= max(places):
            raise InputError(
                f"line {number:,} of {path} has too few columns: expected at least "
                f"{max(places) + 1}, separated by tabs, got {len(row)}."
            )
        if not doubt and (doubt := _doubt(row, width)):
            warn(f"warning: line {number:,} of {path} has {doubt}.")
        yield number, tuple(row[place] for place in places)
    if not number:
        raise InputError(f"{path} holds no rows" + " after its first line" * has_header + ".")


def _place(name: str, header: Sequence[str], path: str) -> int:
    """Finds the index of a column, from 0 on."""
    if name not in header:
        raise InputError(
            f"{path} has no column {name!r}; its first line names {', '.join(map(repr, header))}. "
            "Give names from this line, or numbers from 1 on for a file without names."
        )
    if header.count(name) > 1:
        raise InputError(
            f"{path} has {header.count(name)} columns {name!r}. Give each a name of its own in the "
            "first line."
        )
    return header.index(name)


def _quoting(rows: Sequence[Sequence[bytes]], places: Sequence[int]) -> str:
    """Says that the first rows have every text in quotation marks; "" means that they do not."""
    texts = [row[place] for row in rows for place in places if place < len(row)]
    if len(rows) > 1 and all(len(t) > 1 and t[:1] == t[-1:] == b'"' for t in texts):
        return f"quotation marks around each text of its first {len(rows)} rows. {_QUOTES_ARE_TEXT}"
    return ""


def _doubt(row: Sequence[bytes], width: int) -> str:
    """Says why a row may have other values than its writer meant; "" if nothing shows it."""
    if len(row) > width:
        return f"{len(row)} values, but the first line has {width}. A tab inside a text ends it"
    if any(map(_is_quoted, row)):
        return (
            "a value in quotation marks with doubled marks inside, as CSV has them. "
            f"{_QUOTES_ARE_TEXT}"
        )
    return ""


def _is_quoted(value: bytes) -> bool:
    inside = value[1:-1]
    doubled = value.startswith(b'"') and value.endswith(b'"') and b'""' in inside
    return doubled and b'"' not in inside.replace(b'""', b"")
