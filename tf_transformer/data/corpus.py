"""Parallel text: pairs of strings from files or from TFDS, whole or as a stream."""

import hashlib
import itertools
import os
import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tf_transformer.errors import InputError
from tf_transformer.files import read_lines

Pair = tuple[str, str]  # a source sentence and its translation


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

    def stream(self) -> "PairStream":
        """The same pairs as a stream."""

        def start(skipped: Counter[str]) -> Iterator[Pair]:
            skipped.update(self.skipped)
            return zip(self.sources, self.targets, strict=True)

        content = hashlib.sha256()
        for line in itertools.chain(self.sources, self.targets):
            content.update(line.encode("utf-8", "surrogatepass") + b"\n")
        return PairStream(start, identity=content.hexdigest())


@dataclass(frozen=True)
class PairStream:
    """Sentence pairs that are read anew in every pass, and never held all at once.

    Attributes:
        start: starts a pass; counts in the counter it is given what it leaves out, by reason.
        identity: which text this is. Another text has another, and so has a changed file.

    Example:
        >>> stream = Corpus(["one", "two"], ["eins", "zwei"]).stream()
        >>> list(stream)
        [('one', 'eins'), ('two', 'zwei')]
    """

    start: Callable[[Counter[str]], Iterable[Pair]]
    identity: str

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.start(Counter()))

    def read(self) -> Corpus:
        """All pairs, in memory."""
        skipped = Counter[str]()
        sources, targets = [], []
        for source, target in self.start(skipped):
            sources.append(source)
            targets.append(target)
        return Corpus(sources, targets, skipped)

    def hold_out(self, count: int, seed: int) -> tuple["PairStream", Corpus]:
        """Splits off validation pairs, by distinct source sentence.

        Pairs with the same source go to the same side, so that no validation sentence was
        trained on. A tenth of the sources at the most is held out: those with the smallest
        seeded hashes, so that the choice is one number, however long the text.

        Args:
            count: distinct validation sources wanted.
            seed: of the choice.

        Returns:
            (train, valid).

        Raises:
            InputError: when there are fewer than two distinct source sentences.
        """
        hashes = (_seeded_hash(source, seed) for source, _ in self)
        smallest = _smallest_distinct(hashes, 10 * count)  # enough to tell a tenth from `count`
        if len(smallest) < 2:
            raise InputError(
                "validation pairs cannot be held out of fewer than 2 distinct source sentences; "
                "give more text, or data.valid_source and data.valid_target."
            )
        last = smallest[max(1, min(count, len(smallest) // 10)) - 1]
        train = self._where(lambda source: _seeded_hash(source, seed) > last, f"> {last} {seed}")
        valid = self._where(lambda source: _seeded_hash(source, seed) <= last, f"<= {last} {seed}")
        held = valid.read()
        return train, Corpus(held.sources, held.targets)

    def _where(self, keep: Callable[[str], bool], which: str) -> "PairStream":
        """The pairs whose source is to be kept; `which` says so in the identity."""

        def start(skipped: Counter[str]) -> Iterator[Pair]:
            return (pair for pair in self.start(skipped) if keep(pair[0]))

        return PairStream(start, f"{self.identity} {which}")


def _seeded_hash(text: str, seed: int) -> int:
    """64 bits that are as good as random, and the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest(), "big")


def _smallest_distinct(values: Iterable[int], count: int) -> list[int]:
    """The `count` smallest distinct values, rising, in room for three times as many."""
    kept: list[int] = []
    bound = None
    for value in values:
        if bound is None or value < bound:
            kept.append(value)
            if len(kept) > 3 * count:
                kept = sorted(set(kept))[:count]
                bound = kept[-1] if len(kept) == count else None
    return sorted(set(kept))[:count]


def read_files(source_path: str | os.PathLike, target_path: str | os.PathLike) -> Corpus:
    """Pairs from two files, in memory; see `stream_files`."""
    return stream_files(source_path, target_path).read()


def stream_files(source_path: str | os.PathLike, target_path: str | os.PathLike) -> PairStream:
    """Pairs from two files; line n of one translates line n of the other.

    Pairs with an empty side or with bytes that are not UTF-8 are left out and counted. A pass
    raises an `InputError` when a file is missing, the files have different numbers of lines, or
    no pair remains.
    """

    def start(skipped: Counter[str]) -> Iterator[Pair]:
        rows = _line_pairs(source_path, target_path)
        return clean(rows, f"{source_path} and {target_path}", skipped)

    return PairStream(start, f"files {_stamp(source_path)} {_stamp(target_path)}")


def _stamp(path: str | os.PathLike) -> str:
    """Which file this is, in which state; whether it is there is found out when it is read."""
    path = pathlib.Path(path).absolute()
    state = path.stat() if path.exists() else None
    return f"{path} {state.st_size} {state.st_mtime_ns}" if state else f"{path} missing"


def _line_pairs(
    source_path: str | os.PathLike, target_path: str | os.PathLike
) -> Iterator[tuple[bytes, bytes]]:
    lines = itertools.zip_longest(read_lines(source_path), read_lines(target_path))
    for number, (source, target) in enumerate(lines, start=1):
        if source is None or target is None:
            ended = (source_path, target_path) if source is None else (target_path, source_path)
            shorter, longer = ended
            raise InputError(
                f"{shorter} ends after line {number - 1} but {longer} goes on: line n of one "
                "must translate line n of the other. Give files of equal length."
            )
        yield source, target


def stream_tfds(name: str, split: str, reverse: bool = False, data_dir: str = "") -> PairStream:
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
        builder.as_dataset(split=split)  # fails now, not in the middle of a pass
    except (tfds.core.DatasetNotFoundError, ValueError, AssertionError) as error:
        reason = str(error).strip().split("\n")[0]  # TFDS goes on with all it knows
        raise InputError(f"data.tfds={name}: TFDS cannot load split {split!r}: {reason}") from error
    languages = _language_pair(builder.info.features, name)
    source, target = reversed(languages) if reverse else languages

    def start(skipped: Counter[str]) -> Iterator[Pair]:
        examples = tfds.as_numpy(builder.as_dataset(split=split))
        rows = ((example[source], example[target]) for example in examples)
        return clean(rows, f"{name} ({split})", skipped)

    folder = pathlib.Path(name if pathlib.Path(name).is_dir() else builder.data_dir)
    state = " ".join(_stamp(path) for path in sorted(folder.glob("*")))
    return PairStream(start, f"tfds {name} {split} {source} {target} {state}")


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


def clean(rows: Iterable[tuple[bytes, bytes]], name: str, skipped: Counter[str]) -> Iterator[Pair]:
    """Decodes pairs and leaves out, counted, those that cannot be trained on.

    Raises:
        InputError: at the end, when no pair remained.
    """
    found = False
    for source_bytes, target_bytes in rows:
        try:
            source, target = source_bytes.decode("utf-8"), target_bytes.decode("utf-8")
        except UnicodeDecodeError:
            skipped["not UTF-8"] += 1
            continue
        if source.strip() and target.strip():
            found = True
            yield source, target
        else:
            skipped["empty side"] += 1
    if not found:
        raise InputError(f"no pair to train on in {name}: skipped {dict(skipped)}.")
