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
    """The pairs of the split `split`, by default train, of the corpus `name`; see `open_tfds`."""
    return open_tfds(corpus.name, corpus.split or "train", corpus.reverse, data.tfds_dir)


def open_tfds(name: str, split: str, reverse: bool = False, data_dir: str = "") -> Rows:
    """The pairs of a TFDS translation corpus.

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
    """Languages of source and target of a TFDS corpus; None if it does not name them.

    Raises:
        InputError: as `open_tfds`.
    """
    info = _tfds_builder(name, data_dir).info
    sides = _sides(info, name, reverse)
    if getattr(info.features, "languages", None) or pathlib.Path(name).is_dir():
        return sides
    pair = pair_in(name)
    return pair and ((pair[1], pair[0]) if reverse else pair)


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
    """The keys of source and target in the examples of a corpus, as the corpus itself says.

    TFDS sorts the languages of its features, so their order says nothing.
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


def pair_in(name: str) -> tuple[str, str] | None:
    """The languages in a name like wmt14_translate/de-en:1.0.0."""
    pair = name.partition("/")[2].partition(":")[0].split("-")
    return (pair[0], pair[1]) if len(pair) == 2 else None


def _file_hash(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
