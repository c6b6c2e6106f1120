"""Mistakes in the source: typos and stray spaces. The target stays correct."""

import re

import numpy as np

from tf_transformer.data.augmentation.pairs import Pair, chosen, happens

_WORD = re.compile(r"[^\W\d_]{4,}")
_LETTERS_PER_TYPO = 30
_KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(0, at - 1) : at] + row[at + 1 : at + 2]
    for row in _KEY_ROWS
    for at, key in enumerate(row)
}
_BEFORE_MARK = re.compile(r"(?<=\w)(?=[,.!?;:…]+(?:\s|$))")
_AFTER_MARK = re.compile(r"(?<=[,.!?;:…]) (?=\w)")
_SPACE = re.compile(r"(?<=\S) (?=\S)")


def typos(pair: Pair, rng: np.random.Generator) -> Pair:
    """Makes a typo in the source, or several in a long source.

    Two letters are swapped, or a letter is left out, doubled, or replaced by a neighbour on the
    keyboard. Words of fewer than four letters, numbers and the first letters of words stay.
    """
    source, target = pair
    for _ in range(1 + len(source) // _LETTERS_PER_TYPO):
        if words := list(_WORD.finditer(source)):
            word = chosen(words, rng)
            source = source[: word.start()] + _misspelt(word[0], rng) + source[word.end() :]
    return source, target


def _misspelt(word: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(1, len(word) - 1))
    before, letter, following, rest = word[:at], word[at], word[at + 1], word[at + 2 :]
    near = chosen(_NEIGHBOURS.get(letter, letter), rng)
    changed = (following + letter, following, letter + letter + following, near + following)
    return before + chosen(changed, rng) + rest


def spaces(pair: Pair, rng: np.random.Generator) -> Pair:
    """Puts a space before a mark of the source, leaves one out after a mark, or doubles spaces."""
    source, target = pair
    ways = [(_BEFORE_MARK, " "), (_AFTER_MARK, ""), (_SPACE, "  ")]
    ways = [(pattern, text) for pattern, text in ways if pattern.search(source)]
    for pattern, text in ways:
        if happens(0.4, rng):
            source = _replaced_once(pattern, text, source, rng)
    if source == pair[0] and ways:
        source = _replaced_once(*ways[0], source, rng)
    return (f" {source} " if happens(0.2, rng) else source), target


def _replaced_once(
    pattern: re.Pattern[str], text: str, source: str, rng: np.random.Generator
) -> str:
    if not (matches := list(pattern.finditer(source))):
        return source
    match = chosen(matches, rng)
    return source[: match.start()] + text + source[match.end() :]
