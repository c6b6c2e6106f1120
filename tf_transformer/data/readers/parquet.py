"""Parquet: tables as Hugging Face's data sets have them."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.json_lines import NESTED
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_pieces, unreadable

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1000  # that are in memory as texts


def read_parquet(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a Parquet file. The texts are columns, or fields of the column "translation".

    `columns` gives their names. By default they are the names of the fields, such as source and
    target. For pairs, `data.source_language` and `data.target_language` come next. A text that is
    null is an empty text. The rows are read piece by piece, so at most a row group is in memory.

    A pass raises an `InputError` if the file is broken, if it has no such columns of text, or if it
    has them twice and no `columns` say which ones count.
    """
    choices = [corpus.columns or tuple(fields)]
    if len(fields) == 2 and not corpus.columns:
        choices.append((data.source_language, data.target_language))

    def start(skipped: Counter[str]) -> Iterator[Row]:
        import pyarrow.parquet

        with _errors(corpus.path), pyarrow.parquet.ParquetFile(corpus.path) as file:
            columns = _columns(file.schema_arrow, choices, corpus.path)
            batches = file.iter_batches(_ROWS, columns=columns)
            yield from enumerate(
                itertools.chain.from_iterable(_rows(batch, columns) for batch in batches), 1
            )

    return Rows(
        (corpus.path,) * len(fields),
        start,
        lambda: f"parquet {content(corpus.path, read=read_pieces)} {choices}",
    )


@contextlib.contextmanager
def _errors(path: str) -> Iterator[None]:
    """Makes errors of the library errors for users."""
    import pyarrow

    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise unreadable(path, error) from error
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{path} is not a whole Parquet file: {reason}") from error


def _columns(schema: "pyarrow.Schema", choices: Sequence[Sequence[str]], path: str) -> list[str]:
    """Finds the columns of the texts, as "en" or "translation.en"."""
    import pyarrow

    types = {field.name: field.type for field in schema}
    nested = types.get(NESTED)
    if nested is not None and pyarrow.types.is_struct(nested):
        types |= {f"{NESTED}.{field.name}": field.type for field in nested}
    places = [
        names
        for prefix in ("", f"{NESTED}.")
        for names in [[prefix + key for key in keys] for keys in choices]
        if all(name in types for name in names)
    ]
    if not places:
        expected = ", or ".join(" and ".join(map(repr, keys)) for keys in choices)
        raise InputError(
            f"{path} has the columns {', '.join(map(repr, types)) or 'none'}; expected {expected}. "
            "Give the names as columns of the corpus."
        )
    if len(places) > 1 and len(choices) > 1:
        raise InputError(
            f"{path} has two pairs of texts: {' and '.join(map(repr, places[0]))}, and "
            f"{' and '.join(map(repr, places[1]))}. Give the names of one pair as columns of the "
            "corpus."
        )
    for name in places[0]:
        kind = types[name]
        if pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise InputError(f"{path}: the column {name!r} must be text, got {kind}.")
    return places[0]


def _rows(batch: "pyarrow.RecordBatch", columns: Sequence[str]) -> Iterator[tuple[bytes, ...]]:
    import pyarrow

    texts = []
    for name in columns:
        array = _column(batch, name).cast(pyarrow.string())  # which may have been a dictionary
        texts.append([text or b"" for text in array.cast(pyarrow.binary()).to_pylist()])
    return zip(*texts, strict=True)


def _column(batch: "pyarrow.RecordBatch", name: str) -> "pyarrow.Array":
    """A column of a batch; in "translation.en", a field of a column."""
    import pyarrow.compute

    if name in batch.schema.names:
        return batch.column(name)
    outer, _, inner = name.partition(".")
    return pyarrow.compute.struct_field(batch.column(outer), inner)
