"""Where the terms of a glossary apply to a text, one place after the other."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tf_transformer.text.splitting import SentenceSplitter
from tf_transformer.text.terms import ALONE, Term, unit_pattern, units, word_class


class Match(NamedTuple):
    """A place of a text where a term applies."""

    start: int  # of the source in the text, in characters
    stop: int
    target: str


def find_terms(text: str, terms: Iterable[Term], language: str = "") -> list[Match]:
    """The places where terms apply to a text without NUL, in order.

    A term applies where all units of its source follow one another in a sentence. The first word of
    a sentence may have a capital that the source does not have. Places do not overlap: from left to
    right, the longest source counts, and of equal sources the first term. `language` is for
    `SentenceSplitter`.
    """
    targets: dict[tuple[str, ...], str] = {}
    for source, target in terms:
        targets.setdefault(tuple(units(source)), target)
    longest = max(map(len, targets), default=0)
    matches, offset = [], 0
    for sentence in SentenceSplitter(language).split(text):
        places = list(re.finditer(unit_pattern(), sentence))
        words = [place[0] for place in places]
        first = next(filter(lambda n: is_word(words[n]), range(len(words))), None)
        start = 0
        while start < len(words):
            stop = start + 1
            for end in range(min(start + longest, len(words)), start, -1):
                key = tuple(words[start:end])
                as_written, lowered = targets.get(key), targets.get((_lowered(key[0]), *key[1:]))
                if target := as_written or (lowered if start == first else None):
                    stop = end
                    span = offset + places[start].start(), offset + places[end - 1].end()
                    matches.append(Match(*span, target))
                    break
            start = stop
        offset += len(sentence)
    return matches


def _lowered(word: str) -> str:
    return word[:1].lower() + word[1:]


def is_word(unit: str) -> bool:
    """Whether a unit is a word."""
    return re.match(f"[{word_class()}{ALONE}]", unit) is not None
