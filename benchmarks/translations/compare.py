"""Compares two lists of translations of the same sentences, and reads test sets."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tf_transformer.files.reading import read_lines


class Scored(Protocol):
    """A translation with its score."""

    @property
    def text(self) -> str: ...

    @property
    def score(self) -> float: ...


class Comparison(NamedTuple):
    """Two lists of translations.

    Attributes:
        different: sentences whose translations differ.
        scores_within: the largest difference of the scores of equal translations.
    """

    different: int
    scores_within: float


def compare(expected: Sequence[Scored], found: Sequence[Scored]) -> Comparison:
    """Counts translations that differ, and compares the scores of equal translations."""
    pairs = list(zip(expected, found, strict=True))
    same = [abs(a.score - b.score) for a, b in pairs if a.text == b.text]
    return Comparison(len(pairs) - len(same), max(same, default=0.0))


def first_lines(path: str, count: int) -> list[str]:
    """The first lines of a file; broken UTF-8 is replaced."""
    lines = itertools.islice(read_lines(path), count)
    return [line.decode("utf-8", "replace") for line in lines]


def bleu(translations: Sequence[str], references: Sequence[str]) -> float | None:
    """BLEU by sacreBLEU; None without references."""
    import sacrebleu

    if not references:
        return None
    return sacrebleu.corpus_bleu(list(translations), [list(references)]).score
