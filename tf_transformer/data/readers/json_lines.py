"""JSON lines: each line is a JSON object with the texts of an example."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines

NESTED = "translation"  # the key of both texts in Hugging Face data sets


def read_json_lines(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a file of JSON lines. The texts stand in the object, or in its object "translation".

    `columns` gives the keys of the texts. By default they are the names of the fields, such as
    source and target. For pairs, `data.source_language` and `data.target_language` come next.
    Empty lines do not count. A lone surrogate in a text gives bytes that are not UTF-8.

    A pass raises an `InputError` with file and line if a line is not such an object, if a key has
    two values, or if a line has other texts in "translation" than outside of it, and no `columns`
    say which ones count.
    """
    choices = [corpus.columns or tuple(fields)]
    if len(fields) == 2 and not corpus.columns:
        choices.append((data.source_language, data.target_language))

    def start(skipped: Counter[str]) -> Iterator[Row]:
        for number, line in enumerate(read_lines(corpus.path), 1):
            if line.strip():
                place = f"line {number:,} of {corpus.path}"
                texts = _texts(_object(line, place), choices, place)
                yield number, tuple(text.encode("utf-8", "surrogatepass") for text in texts)

    return Rows(
        (corpus.path,) * len(fields), start, lambda: f"jsonl {content(corpus.path)} {choices}"
    )


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=_one_value_each)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is not JSON in UTF-8: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{place} must be a JSON object, got {value!r:.40}.")
    return value


def _one_value_each(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a dictionary. Without this check, `json` takes the last of several values."""
    record = dict(pairs)
    for key, value in pairs if len(record) < len(pairs) else ():
        if record[key] != value:
            raise ValueError(f"the key {key!r} has two values")
    return record


def _texts(record: Mapping[str, Any], choices: Sequence[Sequence[str]], place: str) -> list[str]:
    """Returns the texts of an object. The first choice of keys that it has counts."""
    nested = record.get(NESTED)
    found = []
    for values in (record, nested if isinstance(nested, dict) else {}):
        keys = next((keys for keys in choices if all(key in values for key in keys)), ())
        if keys:
            found.append({key: values[key] for key in keys})
    if not found:
        expected = ", or ".join(" and ".join(map(repr, keys)) for keys in choices)
        raise InputError(
            f"{place} has the keys {', '.join(map(repr, record))}; expected {expected}. Give the "
            "keys as columns of the corpus."
        )
    found = [
        pair for pair in found if all(isinstance(text, str) for text in pair.values())
    ] or found
    if len(choices) > 1 and [*found[0].values()] != [*found[-1].values()]:
        raise InputError(
            f"{place} has two pairs of texts: in {' and '.join(map(repr, found[0]))}, and in "
            f"{' and '.join(map(repr, found[-1]))} of {NESTED!r}. Give the keys of one pair as "
            "columns of the corpus."
        )
    for key, text in found[0].items():
        if not isinstance(text, str):
            raise InputError(f"{place}: {key!r} must be text, got {text!r:.40}.")
    return [*found[0].values()]
