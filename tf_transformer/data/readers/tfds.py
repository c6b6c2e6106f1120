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
    """Opens the split `split` of the corpus `name`, by default train; see `open_tfds`."""
    return open_tfds(corpus.name, corpus.split or "train", corpus.reverse, corpus.data_dir)


def open_tfds(name: str, split: str, reverse: bool = False, data_dir: str = "") -> Rows:
    """Opens a TFDS translation corpus.

    Args:
        name: TFDS name with its languages, such as wmt14_translate/de-en for German to English. Or
            a folder of <language>.<split>.txt files for `tfds.TranslateFolder`. Its source is the
            language that comes first in the alphabet.
        split: a TFDS split, such as train or validation[:100].
        reverse: whether to swap source and target.
        data_dir: the folder of prepared TFDS corpora; empty: the default of TFDS.

    Returns:
        the rows of the corpus.

    Raises:
        InputError: if TFDS cannot load the corpus, or if it has no pairs of texts.
    """
    import tensorflow_datasets as tfds  # slow to import, and most runs do not need it

    builder = _tfds_builder(name, data_dir)
    source, target = _sides(builder.info, name, reverse)
    try:
        if not pathlib.Path(name).is_dir():
            builder.download_and_prepare()
        builder.as_dataset(split=split)  # fails now, not in the middle of a pass
    except (ValueError, AssertionError, OSError) as error:
        raise _tfds_error(name, split, error) from error

    def start(skipped: Counter[str]) -> Iterator[Row]:
        examples = tfds.as_numpy(builder.as_dataset(split=split))
        for number, example in enumerate(examples, 1):
            yield number, (example[source], example[target])

    def identify() -> str:
        if pathlib.Path(name).is_dir():
            state = content(*sorted(pathlib.Path(name).glob("*.txt")))
        else:
            records = pathlib.Path(builder.data_dir).glob(f"{builder.name}-*")
            state = " ".join([builder.info.full_name, *map(_file_hash, sorted(records))])
        return f"tfds {split} {source} {target} {state}"

    return Rows((f"{name} ({split})",) * 2, start, identify)


def tfds_languages(name: str, reverse: bool, data_dir: str = "") -> tuple[str, str] | None:
    """Returns the languages of source and target of a TFDS corpus; None if it does not name them.

    Raises:
        InputError: if TFDS cannot load the corpus, or if it has no pairs of texts.
    """
    info = _tfds_builder(name, data_dir).info
    sides = _sides(info, name, reverse)
    if getattr(info.features, "languages", None) or pathlib.Path(name).is_dir():
        return sides
    return languages_in_name(Corpus(name=name, reverse=reverse))


def _tfds_builder(name: str, data_dir: str) -> Any:
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


def _sides(info: Any, name: str, reverse: bool) -> tuple[str, str]:
    """Finds the keys of source and target in the examples of a corpus.

    The corpus itself says which key is the source. The order of its features does not, because TFDS
    sorts them.
    """
    import tensorflow_datasets as tfds

    features = info.features
    pairs = [info.supervised_keys, pair_in(name), ("source_sentence", "target_sentence")]
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


def languages_in_name(corpus: Corpus) -> tuple[str, str] | None:
    """The languages of source and target in the name of a corpus; None without them."""
    pair = pair_in(corpus.name)
    return (pair[1], pair[0]) if pair and corpus.reverse else pair


def pair_in(name: str) -> tuple[str, str] | None:
    """Finds the languages in a name such as wmt14_translate/de-en:1.0.0."""
    pair = name.partition("/")[2].partition(":")[0].split("-")
    return (pair[0], pair[1]) if len(pair) == 2 else None


def _file_hash(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
