"""Plain text: line n of each file belongs to example n."""

import os
from collections.abc import Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.readers.rows import Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_aligned

FIELDS = ("source", "target")


def read_plain_text(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens files of plain text.

    For pairs, line n of the file `source` and line n of the file `target` are an example. For
    single texts, each line of the file `path` is an example. A pass raises an `InputError` if a
    file is missing, or if the files have different numbers of lines.
    """
    paths = (corpus.path,) if len(fields) == 1 else (corpus.source, corpus.target)
    if not all(paths):
        needed = "path (data.train_file)" if len(fields) == 1 else "source and target, two files"
        raise InputError(f"a corpus of format text with {' and '.join(fields)} needs {needed}.")
    kind = "lines" if len(fields) == 1 else "files"
    files = (*paths, corpus.alignments) if corpus.alignments else paths
    return Rows(
        paths, lambda _: enumerate(read_aligned(*paths), 1), lambda: f"{kind} {content(*files)}"
    )


def stream_files(source: str | os.PathLike, target: str | os.PathLike) -> ExampleStream:
    """Makes a stream of the pairs of two text files; see `read_plain_text`."""
    corpus = Corpus(source=os.fspath(source), target=os.fspath(target))
    return read_plain_text(corpus, FIELDS, DataConfig()).stream(FIELDS)
