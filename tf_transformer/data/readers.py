"""Texts from files, columns of a table, or a TFDS corpus, as streams of examples."""

import functools
import hashlib
import itertools
import os
import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tf_transformer.config import DataConfig
from tf_transformer.data.examples import Examples, ExampleStream, Texts
from tf_transformer.data.skipped import EMPTY, NOT_UTF8, reasons
from tf_transformer.errors import InputError
from tf_transformer.files.reading import check_file, read_aligned, read_lines

FIELDS = ("source", "target")


def check_pairs(data: DataConfig) -> None:
    """Opens the files of pairs that a configuration names.

    Raises:
        InputError: when a file cannot be read, with `data.origin` if the configuration has it.
    """
    for path in (data.train_source, data.train_target, data.valid_source, data.valid_target):
        try:
            if path:
                check_file(path)
        except InputError as error:
            if not data.origin:
                raise
            raise InputError(
                f"{error} Get the text from {data.origin} and give its folder as data.folder or in "
                "the environment variable TF_TRANSFORMER_DATA; or give the paths of your files as "
                "data.train_source, data.train_target, data.valid_source and data.valid_target."
            ) from error


def read_files(source_path: str | os.PathLike, target_path: str | os.PathLike) -> Examples:
    """Pairs from two files, in memory; see `stream_files`."""
    return stream_files(source_path, target_path).read()


def stream_files(source_path: str | os.PathLike, target_path: str | os.PathLike) -> ExampleStream:
    """Pairs from two files; line n of one translates line n of the other.

    Pairs with an empty text or with bytes that are not UTF-8 are skipped and counted. A pass
    raises an `InputError` when a file is missing, the files have different numbers of lines, or
    no pair remains.
    """

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        lines = read_aligned(source_path, target_path)
        return clean(lines, [str(source_path), str(target_path)], skipped)

    return ExampleStream(FIELDS, start, lambda: f"files {content(source_path, target_path)}")


def stream_lines(path: str | os.PathLike, field: str = "text") -> ExampleStream:
    """The lines of a file, as examples of one field; skips and errors as in `stream_files`."""

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        return clean(((line,) for line in read_lines(path)), [str(path)], skipped)

    return ExampleStream((field,), start, lambda: f"lines {content(path)}")


def stream_table(
    path: str | os.PathLike,
    columns: Sequence[str],
    fields: Sequence[str],
    convert: Callable[[Texts], Texts],
) -> ExampleStream:
    """Examples from a file of tab-separated values. There are no quotes: a tab ends a value.

    A pass raises an `InputError` that names file and line when a row has too few columns, is not
    UTF-8 or cannot be converted; and one that names the file when it is missing, holds no rows, or
    has no such column.

    Args:
        path: the file, plain or compressed.
        columns: names in the first line; or numbers from 1 on, and the first line is a row.
        fields: names of the texts of an example.
        convert: from the values of a row in these columns to the texts of an example; raises a
            `ValueError` for values that are not valid.
    """
    columns = tuple(columns)

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        for number, row in _rows(str(path), columns):
            try:
                yield convert(row)
            except ValueError as error:
                raise InputError(f"line {number:,} of {path}: {error}") from error

    return ExampleStream(tuple(fields), start, lambda: f"table {content(path)} {columns}")


def _rows(path: str, columns: Sequence[str]) -> Iterator[tuple[int, Texts]]:
    """The number of each line with a row, and the row's values in these columns."""
    lines = enumerate(read_lines(path), 1)
    has_header = not all(column.isdecimal() and int(column) for column in columns)
    if has_header:
        header = next(lines, (0, b""))[1].decode("utf-8", "replace").split("\t")
        places = [_place(name, header, path) for name in columns]
    else:
        places = [int(number) - 1 for number in columns]
    number = 0
    for number, line in lines:
        try:
            row = line.decode("utf-8").split("\t")
        except UnicodeDecodeError as error:
            raise InputError(f"line {number:,} of {path} is not UTF-8: {error}.") from error
        if len(row) <= max(places):
            raise InputError(
                f"line {number:,} of {path} has too few columns: expected at least "
                f"{max(places) + 1}, separated by tabs, got {len(row)}."
            )
        yield number, tuple(row[place] for place in places)
    if not number:
        raise InputError(f"{path} holds no rows" + " after its first line" * has_header + ".")


def _place(name: str, header: Sequence[str], path: str) -> int:
    """The place of a column, counted from 0."""
    if name not in header:
        raise InputError(
            f"{path} has no column {name!r}; its first line names {', '.join(map(repr, header))}. "
            "Give names of that line, or numbers from 1 on for a file without names."
        )
    return header.index(name)


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


def stream_tfds(name: str, split: str, reverse: bool = False, data_dir: str = "") -> ExampleStream:
    """Pairs from a TFDS translation corpus.

    Args:
        name: TFDS name with its language pair, like wmt14_translate/de-en: from German to
            English. Or a folder of <language>.<split>.txt files, as `tfds.TranslateFolder` has
            them: from the first language of the alphabet to the second.
        split: a TFDS split, like train or validation[:100].
        reverse: swap source and target.
        data_dir: folder of TFDS' prepared corpora; TFDS' default when empty.

    Raises:
        InputError: when TFDS cannot load the corpus, or it does not hold pairs of texts.
    """
    import tensorflow_datasets as tfds  # slow to import, and most runs do without

    builder = _tfds_builder(name, data_dir)
    source, target = _sides(builder.info, name, reverse)
    try:
        if not pathlib.Path(name).is_dir():
            builder.download_and_prepare()
        builder.as_dataset(split=split)  # fails now, not in the middle of a pass
    except (ValueError, AssertionError, OSError) as error:
        raise _tfds_error(name, split, error) from error

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        examples = tfds.as_numpy(builder.as_dataset(split=split))
        rows = ((example[source], example[target]) for example in examples)
        return clean(rows, [f"{name} ({split})"] * 2, skipped)

    def identify() -> str:
        if pathlib.Path(name).is_dir():
            state = content(*sorted(pathlib.Path(name).glob("*.txt")))
        else:
            records = pathlib.Path(builder.data_dir).glob(f"{builder.name}-*")
            state = " ".join([builder.info.full_name, *map(_file_hash, sorted(records))])
        return f"tfds {split} {source} {target} {state}"

    return ExampleStream(FIELDS, start, identify)


def tfds_languages(name: str, reverse: bool, data_dir: str = "") -> tuple[str, str] | None:
    """Languages of source and target of a TFDS corpus; None if it does not name them.

    Raises:
        InputError: as `stream_tfds`.
    """
    info = _tfds_builder(name, data_dir).info
    sides = _sides(info, name, reverse)
    if getattr(info.features, "languages", None) or pathlib.Path(name).is_dir():
        return sides
    pair = _pair_in(name)
    return pair and ((pair[1], pair[0]) if reverse else pair)


def _tfds_builder(name: str, data_dir: str):
    import tensorflow_datasets as tfds

    try:
        if pathlib.Path(name).is_dir():
            return tfds.TranslateFolder(name)
        return tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError, OSError) as error:
        raise _tfds_error(name, "train", error) from error


def _tfds_error(name: str, split: str, error: Exception) -> InputError:
    reason = str(error).strip().split("\n")[0]  # a list of all corpora follows
    advice = " Give a folder as data.tfds_dir." if isinstance(error, OSError) else ""
    return InputError(f"data.tfds={name}: TFDS cannot load split {split!r}: {reason}{advice}")


def _sides(info, name: str, reverse: bool) -> tuple[str, str]:
    """The keys of source and target in the examples of a corpus, as the corpus itself says.

    TFDS sorts the languages of its features, so their order says nothing.
    """
    import tensorflow_datasets as tfds

    features = info.features
    pairs = [info.supervised_keys, _pair_in(name), ("source_sentence", "target_sentence")]
    if len(features) == 2:
        pairs.append(tuple(sorted(features)))
    texts = {key for key in features if isinstance(features[key], tfds.features.Text)}
    for pair in filter(None, pairs):
        if len(pair) == 2 and all(isinstance(key, str) and key in texts for key in pair):
            return (pair[1], pair[0]) if reverse else (pair[0], pair[1])
    raise InputError(
        f"data.tfds={name} holds {features}; expected a translation corpus of two languages, "
        "like wmt14_translate/de-en."
    )


def _pair_in(name: str) -> tuple[str, str] | None:
    """The languages in a name like wmt14_translate/de-en:1.0.0."""
    pair = name.partition("/")[2].partition(":")[0].split("-")
    return (pair[0], pair[1]) if len(pair) == 2 else None


def _file_hash(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def clean(
    rows: Iterable[tuple[bytes, ...]], names: Sequence[str], skipped: Counter[str]
) -> Iterator[tuple[str, ...]]:
    """Decodes examples; skips and counts those that cannot be trained on.

    Args:
        rows: the texts of each example.
        names: of the files of these texts.
        skipped: counts the skipped examples, by reason.

    Raises:
        InputError: at the end, when no example remained.
    """
    found, not_utf8 = False, ""
    for number, row in enumerate(rows, 1):
        try:
            texts = tuple(text.decode("utf-8") for text in row)
        except UnicodeDecodeError as error:
            name = names[row.index(error.object)]
            not_utf8 = not_utf8 or f"{NOT_UTF8}, the first in line {number:,} of {name}"
            skipped[not_utf8] += 1
            continue
        if all(text.strip() for text in texts):
            found = True
            yield texts
        else:
            skipped[EMPTY] += 1
    if not found:
        files = " and ".join(dict.fromkeys(names))
        if skipped:
            raise InputError(f"no example in {files} can be used: {reasons(skipped)}.")
        raise InputError(f"expected at least one line, but nothing is in {files}.")
