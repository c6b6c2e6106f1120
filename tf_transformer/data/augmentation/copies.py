"""Spans at the same place of both sides, which a model learns to copy."""

import re

import numpy as np

from tf_transformer.data.augmentation.pairs import END_MARK, Pair, chosen, happens
from tf_transformer.data.augmentation.spans import closing_tag, draw, name_like

Span = tuple[slice, slice]
"""the characters that a span replaces, in the source and in the target"""

KINDS = ("emoji", "emoji", "url", "email", "number", "number", "code", "tag", "element")
"""what `copy` puts into a pair; each entry has the same probability"""

_LIKE_A_WORD = "like a word"
NAME_KINDS = ("name", "changed_name", *["name_without_accents", "joined_name", _LIKE_A_WORD] * 2)
"""what `names` puts in place of a name; each entry has the same probability"""

_NAME = re.compile(r"(?<![\w'’])[^\W\d_][^\W\d_]{2,}(?![\w'’])")
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"(?<![\w.,:])\d{2,}(?![\w.,:]*\d)(?!\w)")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…]) (?=\S)")


def copy(pair: Pair, rng: np.random.Generator) -> Pair:
    """Puts one or two random spans into both sides, at the same places; a few pairs are a span."""
    if happens(0.03, rng):
        span = draw(chosen(("url", "email", "number", "code", "name"), rng), rng)
        return span, span
    pair = copied(pair, chosen(KINDS, rng), rng)[0]
    return copied(pair, chosen(KINDS, rng), rng)[0] if happens(0.2, rng) else pair


def copied(
    pair: Pair, kind: str, rng: np.random.Generator, held_out: bool = False
) -> tuple[Pair, list[str]]:
    """Puts a random span into both sides, at the same place; returns the texts and their spans.

    The kind is one of `spans.SPANS`, or element: an opening and a closing tag. Training never draws
    a span that is held out.
    """
    if kind == "element":
        opening = draw("opening_tag", rng, held_out)
        whole = slice(0, len(pair[0])), slice(0, len(pair[1]))
        inside = chosen([whole, *_shared_names(pair).values()], rng)
        marks = [opening, closing_tag(opening)]
        source, target = (
            f"{text[: part.start]}{marks[0]}{text[part]}{marks[1]}{text[part.stop :]}"
            for text, part in zip(pair, inside, strict=True)
        )
        return (source, target), marks
    span = draw(kind, rng, held_out)
    if kind == "number" and (numbers := _shared(pair, _NUMBER)):
        return _with_text(pair, chosen(list(numbers.values()), rng), span), [span]
    if kind == "emoji":
        span *= chosen((1, 1, 1, 1, 2, 3), rng)
        if happens(0.1, rng):
            return (pair[0] + span, pair[1] + span), [span]
    return _with_text(pair, chosen(_places(pair), rng), span), [span]


def names(pair: Pair, rng: np.random.Generator) -> Pair:
    """Replaces a name that both sides share by another name."""
    return renamed(pair, rng)[0]


def renamed(
    pair: Pair, rng: np.random.Generator, held_out: str | None = None
) -> tuple[Pair, list[str]]:
    """Replaces a name that both sides share; returns the texts and the new name, if they share one.

    The new name is one for training, of one of `NAME_KINDS`, or one that training never draws, of
    the kind `held_out`, such as "name".
    """
    if not (known := _shared_names(pair)):
        return pair, []
    pattern = re.compile(rf"(?<!\w){re.escape(chosen(list(known), rng))}(?!\w)")
    name = draw(held_out, rng, held_out=True) if held_out else _new_name(pair[0], rng)
    source, target = (pattern.sub(lambda _: name, text) for text in pair)
    return (source, target), [name]


def _new_name(text: str, rng: np.random.Generator) -> str:
    """A name of a list, one made from such names, or one that begins like a word of the text."""
    kind = chosen(NAME_KINDS, rng)
    if kind == _LIKE_A_WORD:
        return name_like(chosen(_LETTERS.findall(text), rng), rng)
    return draw(kind, rng)


def _shared(pair: Pair, pattern: re.Pattern[str]) -> dict[str, Span]:
    """The first place of each match that both sides have equally often."""
    matches = [list(pattern.finditer(text)) for text in pair]
    source, target = ([match[0] for match in side] for side in matches)
    first = [{match[0]: slice(*match.span()) for match in reversed(side)} for side in matches]
    return {
        text: (first[0][text], first[1][text])
        for text in dict.fromkeys(source)
        if source.count(text) == target.count(text)
    }


def _shared_names(pair: Pair) -> dict[str, Span]:
    """The first place of each word with a capital that both sides share.

    A pair without words in lower case has none: equal words in capitals may have two meanings, such
    as "WAR" in English and German.
    """
    if not any(word[0].islower() for word in pair[0].split()):
        return {}
    shared = _shared(pair, _NAME).items()
    return {word: place for word, place in shared if word[0].isupper() and word[1:].islower()}


def _places(pair: Pair) -> list[Span]:
    """The places of a span: start, end, before the end mark, between sentences, at a name."""
    points = [(0, 0)] + [(len(pair[0]), len(pair[1]))] * 2
    ends = [END_MARK.search(text) for text in pair]
    if ends[0] and ends[1]:
        points.append((ends[0].start(), ends[1].start()))
    borders = [[match.end() for match in _BETWEEN_SENTENCES.finditer(text)] for text in pair]
    if len(borders[0]) == len(borders[1]):
        points += zip(*borders, strict=True)
    at_names = list(_shared_names(pair).values())
    points += [(source.stop, target.stop) for source, target in at_names]
    return [(slice(a, a), slice(b, b)) for a, b in points] + at_names


def _with_text(pair: Pair, place: Span, text: str) -> Pair:
    source, target = (_inserted(side, where, text) for side, where in zip(pair, place, strict=True))
    return source, target


def _inserted(text: str, where: slice, span: str) -> str:
    """Replaces a slice by a span. Spaces divide a span in an empty slice from words."""
    before, after = text[: where.start], text[where.stop :]
    if where.start < where.stop:
        return before + span + after
    left = " " * bool(before and not before[-1].isspace())
    right = " " * bool(after and (after[0].isalnum() or after[0] in "\"'“„«¿¡([<{"))
    return before + left + span + right + after
