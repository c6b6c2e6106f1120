"""Translations of words inside of the source, which a model learns to use."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.data.augmentation.pairs import Change, Pair, chosen, happens
from tf_transformer.text.inline_terms import marked
from tf_transformer.text.kept_spans import COMMON, pattern_of
from tf_transformer.text.terms import Term, unit_pattern, units

MOST_TERMS = 3  # in a source
STRANGE = 0.5  # the share of terms that get the phrase of another term
JOINED = 0.3  # the share of neighbours that become one term
LONGEST_ENDING = 3


class _Place(NamedTuple):
    """A word of a source that has a term, whose translation stands in the target."""

    start: int  # characters of the source
    stop: int
    word: str  # the term's translation
    at: int  # the unit of the target that is a form of it


def of_glossary(glossary: Sequence[Term]) -> Change:
    """The change that puts translations of a glossary into the sources of pairs.

    A term counts if the target has its translation, or another form of it: so the model learns to
    inflect. Some terms get the phrase of another term. There the model cannot know the translation
    from the phrase, and learns to read it.
    """
    terms = dict(glossary)
    alike: defaultdict[str, list[str]] = defaultdict(list)  # by the last letter, as an ending
    for word in terms:
        alike[word[-1]].append(word)

    def change(pair: Pair, rng: np.random.Generator) -> Pair:
        source, target = pair
        places = list(_places(source, target, terms))
        if not places:
            return pair
        count = min(len(places), int(rng.integers(1, MOST_TERMS + 1)))
        numbers = sorted(rng.choice(len(places), count, replace=False).tolist(), reverse=True)
        end = len(source)  # of what has no term yet
        for number in numbers:
            first, last = places[number], places[number]
            if last.stop > end:
                continue
            words, following = [first.word], places[number + 1 : number + 2]
            if following and following[0].stop <= end and happens(JOINED, rng):
                is_next = not source[last.stop : following[0].start].strip()
                if is_next and following[0].at == last.at + 1:
                    last = following[0]
                    words.append(last.word)
            phrase = source[first.start : last.stop]
            if len(words) == 1 and happens(STRANGE, rng):
                phrase = chosen(alike[phrase[-1]], rng)
            term = "".join(marked(phrase, " ".join(words)))
            source = source[: first.start] + term + source[last.stop :]
            end = first.start
        return source, target

    return change


def same_stem(word: str, other: str) -> bool:
    """Whether two words may be forms of one: they share their beginning, and have short endings.

    Example:
        >>> same_stem("Hund", "Hunden"), same_stem("Hund", "Hut"), same_stem("alt", "alten")
        (True, False, True)
    """
    shared = 0
    while shared < min(len(word), len(other)) and word[shared] == other[shared]:
        shared += 1
    endings = len(word) - shared, len(other) - shared
    return shared >= 3 and max(endings) <= min(LONGEST_ENDING, shared - 1)


def _places(source: str, target: str, terms: dict[str, str]) -> Iterator[_Place]:
    """The words of a source with terms, outside of spans that a model copies."""
    found = list(_words_outside_spans(source))
    if not any(word in terms for word, _, _ in found):
        return
    free = dict(enumerate(units(target)))
    for word, start, stop in found:
        if word in terms:
            ranked = sorted(free, key=lambda at: (free[at] != terms[word], at))
            forms = (at for at in ranked if same_stem(free[at], terms[word]))
            if (at := next(forms, None)) is not None:
                del free[at]
                yield _Place(start, stop, terms[word], at)


def _words_outside_spans(text: str) -> Iterator[tuple[str, int, int]]:
    """The units of a text with their places, without those of kept spans."""
    spans = [
        match.span()
        for match in re.finditer(pattern_of([COMMON]), text, re.ASCII)
        if match[1] or match[3]
    ]
    for match in re.finditer(unit_pattern(), text):
        start, stop = match.span()
        if not any(start < end and begin < stop for begin, end in spans):
            yield match[0], start, stop
