"""Text: a line of each file is an example."""

import os
from collections.abc import Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.readers.rows import Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_aligned

FIELDS = ("source", "target")


def read_plain_text(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Line n of `source` and of `target` are a pair; of `path`, a text.

    A pass raises an `InputError` when a file is missing, or the files have different numbers of
    lines.
    """
    paths = (corpus.path,) if len(fields) == 1 else (corpus.source, corpus.target)
    if not all(paths):
        needed = "path, a file" if len(fields) == 1 else "source and target, two files"
        raise InputError(f"a corpus of format text with {' and '.join(fields)} needs {needed}.")
    kind = "lines" if len(fields) == 1 else "files"
    return Rows(
        paths,
        lambda _: enumerate(read_aligned(*paths), 1),
        lambda: f"{kind} {content(*paths)}",
    )


def stream_files(source: str | os.PathLike, target: str | os.PathLike) -> ExampleStream:
    """The pairs of two files of text; see `read_plain_text`."""
    corpus = Corpus(source=os.fspath(source), target=os.fspath(target))
    return read_plain_text(corpus, FIELDS, DataConfig()).stream(FIELDS)
