"""Translation corpora of TensorFlow Datasets."""

import hashlib
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.errors import InputError


def read_tfds(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a split of a TFDS translation corpus, by default train.

    The name of the corpus has its languages, such as wmt14_translate/de-en for German to English.
    Or it is a folder of <language>.<split>.txt files for `tfds.TranslateFolder`, whose source is
    the language that comes first in the alphabet. A corpus that TFDS cannot load, or without pairs
    of texts, is an `InputError`.
    """
    import tensorflow_datasets as tfds  # slow to import, and most runs do not need it

    folder, split = pathlib.Path(corpus.name), corpus.split or "train"
    builder = _builder(corpus)
    source, target = _sides(builder.info, corpus)
    try:
        if not folder.is_dir():
            builder.download_and_prepare()
        builder.as_dataset(split=split)  # fails now, not in the middle of a pass
    except (ValueError, AssertionError, OSError) as error:
        raise _error(corpus, split, error) from error

    def start(skipped: Counter[str]) -> Iterator[Row]:
        examples = tfds.as_numpy(builder.as_dataset(split=split))
        for number, example in enumerate(examples, 1):
            yield number, (example[source], example[target])

    def identify() -> str:
        if folder.is_dir():
            state = content(*sorted(folder.glob("*.txt")))
        else:
            records = pathlib.Path(builder.data_dir).glob(f"{builder.name}-*")
            state = " ".join([builder.info.full_name, *map(_file_hash, sorted(records))])
        return f"tfds {split} {source} {target} {state}"

    return Rows((f"{corpus.name} ({split})",) * 2, start, identify)


def stored_languages(corpus: Corpus) -> tuple[str, str] | None:
    """The languages of source and target that TFDS knows; None if the corpus does not name them."""
    info = _builder(corpus).info
    sides = _sides(info, corpus)
    if getattr(info.features, "languages", None) or pathlib.Path(corpus.name).is_dir():
        return sides
    return languages_in_name(corpus)


def _builder(corpus: Corpus) -> Any:
    import tensorflow_datasets as tfds

    try:
        if pathlib.Path(corpus.name).is_dir():
            return tfds.TranslateFolder(corpus.name)
        return tfds.builder(corpus.name, data_dir=corpus.data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError, OSError) as error:
        raise _error(corpus, "train", error) from error


def _error(corpus: Corpus, split: str, error: Exception) -> InputError:
    reason = str(error).strip().split("\n")[0]  # a list of all corpora follows
    advice = " Give a folder as data.tfds_dir." if isinstance(error, OSError) else ""
    return InputError(
        f"data.tfds={corpus.name}: TFDS cannot load split {split!r}: {reason}{advice}"
    )


def _sides(info: Any, corpus: Corpus) -> tuple[str, str]:
    """Finds the keys of source and target. TFDS sorts the features, so they say no direction."""
    import tensorflow_datasets as tfds

    features = info.features
    pairs = [info.supervised_keys, _in_name(corpus), ("source_sentence", "target_sentence")]
    if len(features) == 2:
        pairs.append(tuple(sorted(features)))
    texts = {key for key in features if isinstance(features[key], tfds.features.Text)}
    for pair in filter(None, pairs):
        if len(pair) == 2 and all(isinstance(key, str) and key in texts for key in pair):
            return (pair[1], pair[0]) if corpus.reverse else (pair[0], pair[1])
    raise InputError(
        f"data.tfds={corpus.name} holds {features}; expected a translation corpus of two "
        "languages, like wmt14_translate/de-en."
    )


def languages_in_name(corpus: Corpus) -> tuple[str, str] | None:
    """The languages of source and target in the name of a corpus; None without them."""
    pair = _in_name(corpus)
    return (pair[1], pair[0]) if pair and corpus.reverse else pair


def _in_name(corpus: Corpus) -> tuple[str, str] | None:
    """The languages in a name such as wmt14_translate/de-en:1.0.0, in this order."""
    pair = corpus.name.partition("/")[2].partition(":")[0].split("-")
    return (pair[0], pair[1]) if len(pair) == 2 else None


def _file_hash(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
