"""Parallel text: pairs of strings from files or from TFDS."""

import itertools
import os
import pathlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.files import read_lines


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs, and what was left out of them.

    Attributes:
        sources: source sentences.
        targets: their translations; `targets[n]` translates `sources[n]`.
        skipped: how many pairs were left out, by reason.
    """

    sources: list[str]
    targets: list[str]
    skipped: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, indices: Iterable[int]) -> "Corpus":
        """The pairs at `indices`, in that order."""
        indices = list(indices)
        return Corpus([self.sources[i] for i in indices], [self.targets[i] for i in indices])

    def hold_out(self, count: int, seed: int) -> tuple["Corpus", "Corpus"]:
        """Splits off validation pairs, by distinct source sentence.

        Pairs with the same source go to the same side, so that no validation sentence was
        trained on. A tenth of the pairs at the most is held out.

        Args:
            count: validation pairs wanted.
            seed: of the choice.

        Returns:
            (train, valid).

        Raises:
            InputError: when there are fewer than two distinct source sentences.
        """
        distinct = list(dict.fromkeys(self.sources))
        if len(distinct) < 2:
            raise InputError(
                "validation pairs cannot be held out of fewer than 2 distinct source sentences; "
                "give more text, or data.valid_source and data.valid_target."
            )
        wanted = max(1, min(count, len(distinct) // 10))
        chosen = np.random.default_rng(seed).permutation(len(distinct))[:wanted]
        held = {distinct[i] for i in chosen}
        is_held = [source in held for source in self.sources]
        train = self.take(i for i, out in enumerate(is_held) if not out)
        valid = self.take(i for i, out in enumerate(is_held) if out)
        return Corpus(train.sources, train.targets, self.skipped), valid


def read_files(source_path: str | os.PathLike, target_path: str | os.PathLike) -> Corpus:
    """Pairs from two files; line n of one translates line n of the other.

    Pairs with an empty side or with bytes that are not UTF-8 are left out and counted.

    Raises:
        InputError: when a file is missing, the files have different numbers of lines, or no
            pair remains.
    """
    rows: list[tuple[bytes, bytes]] = []
    lines = itertools.zip_longest(read_lines(source_path), read_lines(target_path))
    for number, (source, target) in enumerate(lines, start=1):
        if source is None or target is None:
            ended = (source_path, target_path) if source is None else (target_path, source_path)
            shorter, longer = ended
            raise InputError(
                f"{shorter} ends after line {number - 1} but {longer} goes on: line n of one "
                "must translate line n of the other. Give files of equal length."
            )
        rows.append((source, target))
    return clean(rows, name=f"{source_path} and {target_path}")


def read_tfds(name: str, split: str, reverse: bool = False, data_dir: str = "") -> Corpus:
    """Pairs from a TFDS translation corpus.

    Args:
        name: TFDS name with its language pair, like wmt14_translate/de-en: from German to
            English. Or a folder of <language>.<split>.txt files, as `tfds.TranslateFolder` has
            them: from the first language of the alphabet to the second.
        split: a TFDS split, like train or validation[:100].
        reverse: swap source and target.
        data_dir: where TFDS keeps prepared corpora; TFDS' default when empty.

    Raises:
        InputError: when TFDS does not know the corpus or it does not hold pairs of text.
    """
    import tensorflow_datasets as tfds  # slow to import, and most runs do without

    try:
        if pathlib.Path(name).is_dir():
            builder = tfds.TranslateFolder(name)
        else:
            builder = tfds.builder(name, data_dir=data_dir or None)
            builder.download_and_prepare()
        examples = tfds.as_numpy(builder.as_dataset(split=split))
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError) as error:
        reason = str(error).strip().split("\n")[0]  # TFDS goes on with all it knows
        raise InputError(f"data.tfds={name}: TFDS cannot load split {split!r}: {reason}") from error
    languages = _language_pair(builder.info.features, name)
    source, target = reversed(languages) if reverse else languages
    rows = ((example[source], example[target]) for example in examples)
    return clean(rows, name=f"{name} ({split})")


def _language_pair(features: Mapping, name: str) -> tuple[str, str]:
    """Source and target of a corpus whose features are two texts."""
    import tensorflow_datasets as tfds

    languages = getattr(features, "languages", None) or sorted(features)
    is_text = [isinstance(features[key], tfds.features.Text) for key in languages]
    if is_text != [True, True]:
        raise InputError(
            f"data.tfds={name} holds {features}; expected a translation corpus of two languages, "
            "like wmt14_translate/de-en."
        )
    return languages[0], languages[1]


def clean(rows: Iterable[tuple[bytes, bytes]], name: str) -> Corpus:
    """Decodes pairs and leaves out, counted, those that cannot be trained on.

    Raises:
        InputError: when no pair remains.
    """
    sources, targets, skipped = [], [], Counter[str]()
    for source_bytes, target_bytes in rows:
        try:
            source, target = source_bytes.decode("utf-8"), target_bytes.decode("utf-8")
        except UnicodeDecodeError:
            skipped["not UTF-8"] += 1
            continue
        if source.strip() and target.strip():
            sources.append(source)
            targets.append(target)
        else:
            skipped["empty side"] += 1
    if not sources:
        raise InputError(f"no pair to train on in {name}: skipped {dict(skipped)}.")
    return Corpus(sources, targets, skipped)
