"""Readers of corpora by format, for training, validation and evaluation."""

import pathlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.json_lines import read_json_lines
from tf_transformer.data.readers.rows import Rows
from tf_transformer.data.readers.tables import read_tsv
from tf_transformer.data.readers.text import read_plain_text
from tf_transformer.data.readers.tfds import read_tfds
from tf_transformer.data.readers.tmx import read_tmx
from tf_transformer.errors import InputError

Reader = Callable[[Corpus, Sequence[str], DataConfig], Rows]
"""reader(corpus, names, data) opens a corpus. `names` are the names of the texts of an example."""

COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst)$")


@dataclass(frozen=True)
class Format:
    """A format of corpora.

    Attributes:
        read: the reader of the format.
        endings: endings of file names, before the ending of a compressed file.
        options: the fields of `Corpus` that the reader uses.
        sides: the number of texts of an example; 0: any number.
    """

    read: Reader
    endings: tuple[str, ...] = ()
    options: tuple[str, ...] = ("path", "columns")
    sides: int = 0


FORMATS: dict[str, Format] = {}


def register(
    name: str,
    read: Reader,
    endings: Sequence[str] = (),
    options: Sequence[str] = ("path", "columns"),
    sides: int = 0,
) -> None:
    """Registers a format under a name, for the field `format` of a corpus.

    Args:
        name: the name of the format.
        read: the reader of the format.
        endings: endings of the names of its files. Compressed files may have another ending after
            them.
        options: the fields of `Corpus` that the reader uses.
        sides: the number of texts of an example; 0: any number.

    Example:
        >>> register("tab", read_tsv, endings=[".tab"])
        >>> format_of(Corpus(path="a.tab.gz"))
        'tab'
    """
    FORMATS[name] = Format(read, tuple(endings), tuple(options), sides)


def format_of(corpus: Corpus) -> str:
    """Returns the name of a corpus's format: its field `format`, or by the ending of its file.

    Raises:
        InputError: if no format has this name or ending.
    """
    names = ", ".join(FORMATS)
    if corpus.format:
        if corpus.format not in FORMATS:
            raise InputError(f"unknown format {corpus.format!r} of a corpus; expected {names}.")
        return corpus.format
    if corpus.source:
        return "text"
    ending = pathlib.Path(COMPRESSED.sub("", corpus.path)).suffix.lower()
    for name, kind in FORMATS.items():
        if ending in kind.endings:
            return name
    endings = ", ".join(ending for kind in FORMATS.values() for ending in kind.endings)
    raise InputError(
        f"the name of {corpus.path} has no ending of a known format ({endings}). Give the corpus a "
        f"format: {names}."
    )


def open_corpus(corpus: Corpus, names: Sequence[str], data: DataConfig) -> Rows:
    """Opens a corpus.

    Args:
        corpus: the corpus.
        names: names of the texts of an example, such as source and target.
        data: the data options.

    Returns:
        the rows of the corpus.

    Raises:
        InputError: if the format is unknown, if the corpus lacks an option of its format or has
            another option, or if its number of texts is wrong.
    """
    name = format_of(corpus)
    kind = FORMATS[name]
    given = {field.name for field in fields(Corpus) if getattr(corpus, field.name)} - {"format"}
    needed = {"source", "path", "name"} & {*kind.options}
    if given - {*kind.options} or (needed and not given & needed):
        raise InputError(
            f"a corpus of format {name} takes {', '.join(kind.options)}; got "
            f"{', '.join(sorted(given)) or 'none'}."
        )
    if kind.sides not in (0, len(names)):
        raise InputError(
            f"a corpus of format {name} has {kind.sides} texts in an example, but this task needs "
            f"{len(names)} ({', '.join(names)})."
        )
    if corpus.columns and len(corpus.columns) != len(names):
        raise InputError(
            f"expected {len(names)} columns of {corpus.path}, for {' and '.join(names)}; got "
            f"{', '.join(corpus.columns)}."
        )
    return kind.read(corpus, names, data)


def _read_generated(corpus: Corpus, names: Sequence[str], data: DataConfig) -> Rows:
    from tf_transformer.data.generated import read_generated  # it imports readers.rows

    return read_generated(corpus, names, data)


register("text", read_plain_text, [".txt"], ["source", "target", "path"])
register("tsv", read_tsv, [".tsv"])
register("jsonl", read_json_lines, [".jsonl", ".ndjson"])
register("tmx", read_tmx, [".tmx"], sides=2)
register("tfds", read_tfds, options=["name", "split", "reverse", "data_dir"], sides=2)
register("generated", _read_generated, options=["split", "pairs"], sides=2)
