"""Letter case and punctuation: end marks, semicolons, quotation marks and dashes."""

import operator
import re
from collections.abc import Sequence

import numpy as np

from tf_transformer.data.augmentation.pairs import END_MARK, Change, Pair, chosen, happens
from tf_transformer.text import capitals

Quotes = tuple[str, str]
"""The opening and the closing quotation mark."""

ENGLISH = ("“", "”")
QUOTES: dict[str, Quotes] = {
    **dict.fromkeys(("de", "cs", "sk", "sl", "bg", "lt", "is", "et"), ("„", "“")),
    **dict.fromkeys(("fr", "es", "it", "pt", "ru", "uk", "el", "no", "nb"), ("«", "»")),
    **dict.fromkeys(("pl", "hu", "ro", "hr"), ("„", "”")),
    **dict.fromkeys(("sv", "fi"), ("”", "”")),
}
"""The marks by language code; other languages have the marks of English."""

_DASHES = ("–", "—")
_QUOTED = re.compile(r'"([^"]+)"')
_ANY_QUOTE = re.compile(r'["„“”«»]')
_COMMA = re.compile(r"(?<=\w), (?=\w)")


def without_end_mark(pair: Pair, rng: np.random.Generator) -> Pair:
    """Leaves out the end marks of a pair that has one on both sides."""
    source, target = (END_MARK.sub("", text) for text in pair)
    return (source, target) if source != pair[0] and target != pair[1] else pair


def one_line(pairs: Sequence[Pair], rng: np.random.Generator) -> Pair:
    """Joins pairs to a line of several sentences, or of one long sentence with semicolons.

    A fifth of the lines are a long sentence, if each pair before the last has end marks.
    """
    *before, last = pairs
    without = [without_end_mark(pair, rng) for pair in before]
    is_long = happens(0.2, rng) and all(map(operator.ne, before, without))
    sides = zip(*(without if is_long else before), last, strict=True)
    source, target = map("; ".join if is_long else " ".join, sides)
    return source, target


def typography_of(source_language: str | None, target_language: str | None) -> Change:
    """Makes the change `typography` for two languages; it adds marks to half of the pairs."""
    ours = QUOTES.get(source_language or "", ENGLISH)
    theirs = QUOTES.get(target_language or "", ENGLISH)

    def typography(pair: Pair, rng: np.random.Generator) -> Pair:
        dash = chosen(_DASHES, rng)
        changed = _typographic(pair[0], ours, dash), _typographic(pair[1], theirs, dash)
        if changed == pair or happens(0.5, rng):
            return _with_marks(changed, (ours, theirs), dash, rng)
        return changed

    return typography


def _typographic(text: str, quotes: Quotes, dash: str) -> str:
    """The text with typographic quotation marks, apostrophes, dashes and ellipses."""
    text = _QUOTED.sub(lambda quoted: quoted[1].join(quotes), text)
    text = re.sub(r"(?<!\w)'(?=\w)", "‘", re.sub(r"(?<=\w)'", "’", text))
    text = re.sub(r"(?<=\s)--?(?=\s)", dash, text)
    return text.replace("...", "…")


def _with_marks(
    pair: Pair, quotes: tuple[Quotes, Quotes], dash: str, rng: np.random.Generator
) -> Pair:
    """Puts quotation marks around both sides, or a dash at the same place of both."""
    source, target = pair
    ways = [(f"{dash} {source}", f"{dash} {target}")]
    if not any(map(_ANY_QUOTE.search, pair)):
        ways += [(source.join(quotes[0]), target.join(quotes[1]))] * 2
    if len(_COMMA.findall(source)) == len(_COMMA.findall(target)) == 1:
        ways += [(_COMMA.sub(f" {dash} ", source), _COMMA.sub(f" {dash} ", target))] * 4
    return chosen(ways, rng)


def upper(pair: Pair, rng: np.random.Generator) -> Pair:
    """Writes both sides in upper case."""
    return pair[0].upper(), pair[1].upper()


def lower(pair: Pair, rng: np.random.Generator) -> Pair:
    """Writes both sides in lower case. If one has fewer than three words, only the source changes.

    A word or two in lower case are usual text: the translation of "house" is "Haus".
    """
    source, target = pair
    is_short = any(len(text.split()) < 3 for text in pair)
    return source.lower(), target if is_short else target.lower()


def title(pair: Pair, rng: np.random.Generator) -> Pair:
    """Starts every word of both sides with a capital; the other letters stay."""
    return capitals.title(pair[0]), capitals.title(pair[1])
