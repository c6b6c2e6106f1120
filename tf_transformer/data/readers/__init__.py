"""Readers of corpora by format, for training, validation and evaluation."""

import functools
import pathlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers import generated, po
from tf_transformer.data.readers.json_lines import read_json_lines
from tf_transformer.data.readers.moses_zip import read_moses_zip
from tf_transformer.data.readers.parquet import read_parquet
from tf_transformer.data.readers.rows import Rows
from tf_transformer.data.readers.tables import read_tsv
from tf_transformer.data.readers.text import read_plain_text
from tf_transformer.data.readers.tfds import languages_in_name, read_tfds, stored_languages
from tf_transformer.data.readers.tmx import read_tmx
from tf_transformer.data.readers.wmt_xml import read_wmt_xml, without_references
from tf_transformer.data.readers.xliff import read_xliff
from tf_transformer.errors import InputError

Reader = Callable[[Corpus, Sequence[str], DataConfig], Rows]
"""reader(corpus, names, data) opens a corpus. `names` are the names of the texts of an example."""

Languages = tuple[str | None, str | None]
"""The languages of source and target. None stands for an unknown language."""

# Fields of `Corpus` that no reader uses.
OF_EACH_FORMAT = ("format", "weight", "tag", "limit", "clean")
COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst)$")


def of_columns(corpus: Corpus, longest: int = 2) -> Languages | None:
    """The languages, of at most `longest` letters, that name the columns of a corpus."""
    if len(corpus.columns) != 2:
        return None
    source, target = (code_in(name, longest) for name in corpus.columns)
    return source, target


def languages_of_endings(corpus: Corpus) -> Languages | None:
    """The languages in the endings of two files, as of a.en; None without them."""
    files = (COMPRESSED.sub("", file) for file in (corpus.source, corpus.target))
    source, target = (code_in(pathlib.Path(file).suffix[1:]) for file in files)
    return (source, target) if source or target else None


def code_in(name: str, longest: int = 2) -> str | None:
    """The language in a name such as en or en_US, with up to `longest` letters; None without."""
    code = re.fullmatch(rf"([A-Za-z]{{2,{longest}}})(?:[-_][A-Za-z]{{2,4}})*", name)
    return code[1] if code else None


@dataclass(frozen=True)
class Format:
    """A format of corpora. `register` describes its first fields."""

    read: Reader
    endings: tuple[str, ...] = ()
    options: tuple[str, ...] = ("path", "columns")
    sides: int = 0
    # The languages that a corpus names, as of its columns; None: it names none.
    languages: Callable[[Corpus], Languages | None] = of_columns
    # Those that the data of a corpus name, which training stores; it may be loaded for them.
    stored_languages: Callable[[Corpus], tuple[str, str] | None] = lambda _: None
    # Whether a corpus that names no languages needs `data.source_language` and `target_language`.
    needs_languages: bool = False
    # Whether a corpus may name its sides instead. Then these two options are a guess.
    may_name_sides: bool = False
    # Raises an `InputError` if a package that the reader needs is missing.
    check: Callable[[], None] = lambda: None


FORMATS: dict[str, Format] = {}


def register(
    name: str,
    read: Reader,
    endings: Sequence[str] = (),
    options: Sequence[str] = ("path", "columns"),
    sides: int = 0,
    **rules: Any,
) -> None:
    """Registers a format under a name, for the field `format` of a corpus.

    Args:
        name: the name of the format.
        read: the reader of the format.
        endings: endings of the names of its files. Compressed files may have another ending after
            them.
        options: the fields of `Corpus` that the reader uses.
        sides: the number of texts of an example; 0: any number.
        **rules: further attributes of `Format`, such as `languages`.

    Example:
        >>> register("tab", read_tsv, endings=[".tab"])
        >>> format_of(Corpus(path="a.tab.gz"))
        'tab'
    """
    FORMATS[name] = Format(read, tuple(endings), tuple(options), sides, **rules)


def format_of(corpus: Corpus) -> str:
    """Returns the name of a corpus's format: its field `format`, or by the ending of its file."""
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


def kind_of(corpus: Corpus) -> Format:
    """Returns the format of a corpus; raises as `format_of`."""
    return FORMATS[format_of(corpus)]


def open_corpus(corpus: Corpus, names: Sequence[str], data: DataConfig) -> Rows:
    """Opens a corpus, for names of the texts of an example, such as source and target.

    A missing option of its format, another option, and a wrong number of texts are an `InputError`.
    """
    name = format_of(corpus)
    kind = FORMATS[name]
    given = {field.name for field in fields(Corpus) if getattr(corpus, field.name) != field.default}
    given -= {*OF_EACH_FORMAT}
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
    rows = kind.read(corpus, names, data)
    return rows.first(corpus.limit) if corpus.limit else rows


register(
    "text",
    read_plain_text,
    [".txt"],
    ["source", "target", "path", "alignments"],
    languages=languages_of_endings,
)
register("tsv", read_tsv, [".tsv"])
register("jsonl", read_json_lines, [".jsonl", ".ndjson"], needs_languages=True, may_name_sides=True)
for _format in [
    ("tmx", read_tmx, [".tmx"]),
    ("xliff", read_xliff, [".xliff", ".xlf"]),
    ("moses", read_moses_zip, [".zip"]),
]:
    register(
        *_format,
        sides=2,
        languages=functools.partial(of_columns, longest=3),
        needs_languages=True,
    )
register(
    *("wmt", read_wmt_xml, [".xml"]),
    sides=2,
    languages=lambda corpus: of_columns(without_references(corpus), longest=3),
    needs_languages=True,
)
register("parquet", read_parquet, [".parquet"], needs_languages=True, may_name_sides=True)
register(
    *("po", po.read_po, [".po"], ["path", "reverse"]),
    sides=2,
    needs_languages=True,
    check=po.require_packages,
)
register(
    *("tfds", read_tfds, [], ["name", "split", "reverse", "data_dir"]),
    sides=2,
    languages=languages_in_name,
    stored_languages=stored_languages,
)
register(
    *("generated", generated.read_generated, [], ["split", "pairs"]),
    sides=2,
    needs_languages=True,
    check=generated.require_packages,
)
