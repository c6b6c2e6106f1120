"""What corpora hold: sizes, lengths, scripts, words, faults, and texts that several splits share.

A pass reads each corpus once, as a stream. Memory holds keys of texts, not texts. The `MOST_NEAR`
texts on a side that are compared for near ones have a MinHash, too.
"""

import random
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import labels, two_languages
from tf_transformer.data.detected_languages import detectable
from tf_transformer.data.near_texts import NearTexts
from tf_transformer.data.readers import open_corpus
from tf_transformer.data.rules import LANGUAGE, RULES, chosen, faults
from tf_transformer.data.text_keys import KeySet, pair_key, text_key

SIDES = ("source", "target")
EXAMPLES = 5  # of each finding
SAMPLE = 1000  # pairs of a corpus, drawn at random
MOST_NEAR = 200_000  # texts of a side that are compared with each other
MOST_DETECTED = 100_000  # pairs of a corpus whose languages are detected
MOST_WORDS = 1_000_000  # distinct words of a side that are counted
_GROWTH = 1.3  # the vocabulary is counted at numbers of words that grow by this factor


class Example(NamedTuple):
    """A pair in a corpus, and the pair that it equals or resembles, if the finding is of two."""

    corpus: str
    line: int
    texts: tuple[str, ...]
    other: str = ""  # in words: "line 7 of a.en"


@dataclass
class Finding:
    """How many pairs have a trait, and the first of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, example: Example) -> None:
        """Counts a pair."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


class SideCounts:
    """Counts of the texts on one side of a corpus.

    Attributes:
        characters: number of each character.
        lengths: number of texts by their number of words.
        growth: distinct words after a number of words, at numbers that grow by a constant factor.
    """

    def __init__(self) -> None:
        self.characters = Counter[str]()
        self.lengths = Counter[int]()
        self.growth: list[tuple[int, int]] = []
        self._keys = array("Q")
        self._words = set[str]()
        self._total = 0

    def add(self, text: str) -> int:
        """Counts a text, and returns its key."""
        key = text_key(text)
        self._keys.append(key)
        self.characters.update(text)
        words = text.split()
        self.lengths[len(words)] += 1
        if len(self._words) < MOST_WORDS:
            self._words.update(words)
            self._total += len(words)
            if self._total > (self.growth[-1][0] if self.growth else 100) * _GROWTH:
                self.growth.append((self._total, len(self._words)))
        return key

    @property
    def words(self) -> int:
        """The number of all words, with spaces between them."""
        return sum(length * count for length, count in self.lengths.items())

    @property
    def distinct_words(self) -> int:
        """The number of distinct words, of which at most `MOST_WORDS` are counted."""
        return len(self._words)

    @property
    def distinct(self) -> int:
        """The number of distinct texts."""
        return int(np.unique(np.frombuffer(self._keys, np.uint64)).size) if self._keys else 0

    def length(self, share: float) -> int:
        """The number of words that this share of the texts has at most."""
        rest = share * self.lengths.total()
        for length, count in sorted(self.lengths.items()):
            rest -= count
            if rest <= 0:
                return length
        return 0

    def scripts(self) -> Counter[str]:
        """The number of letters by the first word in the name of a character, such as LATIN."""
        counts = Counter[str]()
        for character, count in self.characters.items():
            if character.isalpha():
                usual = unicodedata.normalize("NFKC", character)[0]  # º is a Latin letter
                counts[unicodedata.name(usual, "UNKNOWN").split()[0].capitalize()] += count
        return counts

    def heaps(self) -> tuple[float, float] | None:
        """K and β of Heaps' law, distinct = K · words^β, by least squares; None for few words."""
        if len(self.growth) < 3:
            return None
        words, distinct = np.log(np.array(self.growth, float)).T
        exponent, constant = np.polyfit(words, distinct, 1)
        return float(np.exp(constant)), float(exponent)


class CorpusReport:
    """The counts of one corpus.

    Attributes:
        split: training, validation or test.
        name: a short name, such as train.en-de.
        skipped: number of rows that training cannot read, by reason.
        sides: counts of sources and targets.
        findings: by name of a rule, also of OpusFilter, the pairs that have this fault. Without
            `language` if the languages of the corpus cannot be detected; it has the first
            `MOST_DETECTED` pairs.
        near: by side, texts that are near an earlier one, but equal to none; empty if near texts
            are not compared.
        repeated: pairs that an earlier corpus of the split has; None for the first corpus.
        sample: pairs drawn at random.
    """

    def __init__(self, split: str, name: str):
        self.split, self.name = split, name
        self.skipped = Counter[str]()
        self.sides = SideCounts(), SideCounts()
        self.findings: dict[str, Finding] = {}
        self.near: dict[str, Finding] = {}
        self.repeated: Finding | None = None
        self.sample: list[tuple[str, ...]] = []
        self.pairs = 0
        self._random = random.Random(0)

    def add(self, example: Example, found: Iterable[str]) -> list[int]:
        """Counts a pair and the rules that it breaks; returns the keys of source and target."""
        self.pairs += 1
        for rule in found:
            self.findings[rule].add(example)
        if len(self.sample) < SAMPLE:
            self.sample.append(example.texts)
        elif (place := self._random.randrange(self.pairs)) < SAMPLE:  # each pair is as likely
            self.sample[place] = example.texts
        return [side.add(text) for side, text in zip(self.sides, example.texts, strict=True)]


class _Earlier:
    """The texts of a side so far, up to `MOST_NEAR` texts that are near no other one."""

    def __init__(self) -> None:
        self.texts = NearTexts()
        self._keys = set[int]()

    def has_near(self, sketch: object, key: int) -> bool:
        """Whether a text is near an earlier text, and equal to none. It becomes an earlier text."""
        if key in self._keys or len(self.texts) >= MOST_NEAR:
            return False
        self._keys.add(key)
        if self.texts.find(sketch) is not None:
            return True
        self.texts.add(sketch)
        return False


class _Lines(NamedTuple):
    """The lines of a held-out split with one text."""

    first: str  # in words
    number: int


class _HeldOut:
    """The texts of a held-out split, which later splits are compared with."""

    def __init__(self, name: str, compares_near: bool):
        self.name, self.pairs = name, 0
        self._lines: dict[str, dict[int, _Lines]] = {part: {} for part in (*SIDES, "pair")}
        self._near = {side: NearTexts() for side in SIDES} if compares_near else {}
        self._near_keys: dict[str, list[int]] = {side: [] for side in SIDES}

    def add(self, example: Example, keys: Sequence[int], sketches: dict[str, object]) -> None:
        self.pairs += 1
        for part, key in zip(self._lines, keys, strict=True):
            lines = self._lines[part]
            if (known := lines.get(key)) is None:
                lines[key] = _Lines(f"line {example.line:,} of {example.corpus}", 1)
                if part in sketches and len(lines) <= MOST_NEAR:
                    self._near[part].add(sketches[part])
                    self._near_keys[part].append(key)
            else:
                lines[key] = known._replace(number=known.number + 1)

    def compare(
        self, overlap: "Overlap", example: Example, keys: Sequence[int], sketches: dict[str, object]
    ) -> None:
        """Finds the texts of this split that a pair of another split has, or has nearly."""
        for part, key in zip(self._lines, keys, strict=True):
            if lines := self._lines[part].get(key):
                overlap.exact[part].add(example, key, lines)
        for side, sketch in sketches.items():
            for number in self._near[side].find_all(sketch):
                if (key := self._near_keys[side][number]) != keys[SIDES.index(side)]:
                    overlap.near[side].add(example, key, self._lines[side][key])


class _Shared:
    """The lines of a held-out split that another split has, too."""

    def __init__(self) -> None:
        self.lines: dict[int, int] = {}  # their number, by the key of their text
        self.examples: list[Example] = []

    def add(self, example: Example, key: int, lines: _Lines) -> None:
        if key not in self.lines and len(self.examples) < EXAMPLES:
            self.examples.append(example._replace(other=lines.first))
        self.lines[key] = lines.number

    @property
    def count(self) -> int:
        return sum(self.lines.values())


class Overlap:
    """How many lines of a held-out split another split has, too.

    Attributes:
        split: the split that has them, such as training.
        held_out: the split whose lines are counted, such as test.
        pairs: all lines of it.
        exact: by source, target and pair, lines with equal texts.
        near: by side, lines with a near text; an equal text does not count.
    """

    def __init__(self, split: str, held_out: str, pairs: int, compares_near: bool):
        self.split, self.held_out, self.pairs = split, held_out, pairs
        self.exact = {part: _Shared() for part in (*SIDES, "pair")}
        self.near = {side: _Shared() for side in SIDES} if compares_near else {}


class Inspection(NamedTuple):
    """The reports of all corpora, and the texts that several splits share."""

    corpora: list[CorpusReport]
    overlaps: list[Overlap]


def inspect(
    splits: Mapping[str, Sequence[Corpus]], data: DataConfig, compares_near: bool = True
) -> Inspection:
    """Reads corpora by split: training, validation and test, each of which may be missing.

    Near texts need the package rensa. A corpus that cannot be read is an `InputError`.
    """
    overlaps: list[Overlap] = []
    held_out: list[_HeldOut] = []
    every = [(split, corpus) for split, corpora in splits.items() for corpus in corpora]
    names = labels([corpus for _, corpus in every])
    reports = [CorpusReport(split, name) for (split, _), name in zip(every, names, strict=True)]
    for split in ("test", "validation", "training"):
        if corpora := splits.get(split):
            shared = [Overlap(split, x.name, x.pairs, compares_near) for x in held_out]
            own = None if split == "training" else _HeldOut(split, compares_near)
            own_reports = [report for report in reports if report.split == split]
            listed = list(zip(corpora, own_reports, strict=True))
            _read(listed, data, (held_out, shared), own, compares_near)
            held_out += [own] if own else []
            overlaps[:0] = shared
    return Inspection(reports, overlaps)


def _read(
    listed: Sequence[tuple[Corpus, CorpusReport]],
    data: DataConfig,
    others: tuple[Sequence[_HeldOut], Sequence[Overlap]],
    own: _HeldOut | None,
    compares_near: bool,
) -> None:
    """Counts the pairs of the corpora of one split, and compares them with other splits."""
    earlier = {side: _Earlier() for side in SIDES if compares_near}
    pairs_before = KeySet()
    for number, (corpus, report) in enumerate(listed):
        report.repeated, own_pairs = Finding() if number else None, array("Q")
        languages = two_languages(corpus, data)
        tests = {
            name: rule.start(languages)
            for name, rule in (RULES | chosen(corpus.clean or data.clean)).items()
            if not rule.needs_languages or any(detectable(languages))
        }
        report.findings = {name: Finding() for name in tests}
        report.near = {side: Finding() for side in earlier}
        rows = open_corpus(corpus, SIDES, data).numbered(report.skipped)
        for line, texts in tqdm(rows, report.name, leave=False, unit=" pairs", disable=None):
            if report.pairs == MOST_DETECTED:
                tests.pop(LANGUAGE, None)
            example = Example(report.name, line, texts)
            keys = [*report.add(example, faults(tests, *texts)), pair_key(*texts)]
            if report.repeated and keys[-1] in pairs_before:
                report.repeated.add(example)
            own_pairs.append(keys[-1])
            sides = zip(SIDES, texts, strict=True)
            sketches = {side: earlier[side].texts.sketch(text) for side, text in sides if earlier}
            for (side, sketch), key in zip(sketches.items(), keys, strict=False):
                if earlier[side].has_near(sketch, key):
                    report.near[side].add(example)
            for split_before, overlap in zip(*others, strict=True):
                split_before.compare(overlap, example, keys, sketches)
            if own:
                own.add(example, keys, sketches)
        if number + 1 < len(listed):
            for key in own_pairs:
                pairs_before.add(key)
