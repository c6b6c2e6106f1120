r"""Terms: phrases of a text with the translations that they must get.

A glossary has a term in each line: source, tab, target. A term applies where its source stands in a
text in whole words. `graph_terms` finds the same places on tensors.
"""

import functools
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.text.capitals import CAPITALS, NUMBERS, OTHER_LETTERS
from tf_transformer.text.normalization import WHITE_SPACE, class_of

# Scripts without spaces between words (Thai, Lao, Burmese, Khmer, kana, Han): each of their
# characters counts as a word.
_ALONE = (
    *((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF)),
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)
ALONE = "".join(f"{chr(low)}-{chr(high)}" for low, high in _ALONE)
NOT_SPACE = f"[^{WHITE_SPACE[1:]}"
LINE = rf"[^\t]*{NOT_SPACE}[^\t]*\t[^\t]*{NOT_SPACE}[^\t]*"  # a line with a term


class Term(NamedTuple):
    """A phrase and its translation."""

    source: str
    target: str


@functools.cache
def word_class() -> str:
    """The characters of words as the inside of a character class that `re` and RE2 read alike.

    These are letters, marks, numbers and characters like _, without those of `ALONE`.
    """
    kinds = (*CAPITALS, *OTHER_LETTERS, *NUMBERS, "Mn", "Mc", "Me", "Pc")
    codes = re.findall(r"\{(\w+)\}-\\x\{(\w+)\}", class_of(kinds))
    runs = [(int(start, 16), int(stop, 16)) for start, stop in codes]
    for low, high in _ALONE:
        parts = [
            ((start, min(stop, low - 1)), (max(start, high + 1), stop)) for start, stop in runs
        ]
        runs = [run for pair in parts for run in pair if run[0] <= run[1]]
    return "".join(f"{chr(start)}-{chr(stop)}" for start, stop in runs)


@functools.cache
def unit_pattern() -> str:
    """The pattern of a unit of text: a word, or another character that is no white space."""
    return f"[{word_class()}]+|{NOT_SPACE}"


def units(text: str) -> list[str]:
    """The words and marks of a text.

    Example:
        >>> units("The café's 2nd (north) 駅前")
        ['The', 'café', "'", 's', '2nd', '(', 'north', ')', '駅', '前']
    """
    return re.findall(unit_pattern(), text)


def parse_terms(terms: str) -> list[Term]:
    r"""Reads a glossary, a term in each line. Empty lines are left out, and so are outer spaces.

    Raises:
        InputError: for a line without two phrases and one tab between them.

    Example:
        >>> parse_terms("station\tHauptbahnhof\n")
        [Term(source='station', target='Hauptbahnhof')]
    """
    result = []
    for number, line in enumerate(terms.split("\n"), 1):
        source, *others = (part.strip() for part in line.split("\t"))
        if not (source or any(others)):
            continue
        if not source or len(others) != 1 or not others[0]:
            raise InputError(
                f"line {number:,} of the terms must be a phrase, one tab and its translation, got "
                f"{line!r:.80}."
            )
        result.append(Term(source, others[0]))
    return result


def to_lines(terms: Iterable[Term]) -> str:
    r"""The glossary of terms, which `parse_terms` can read.

    Example:
        >>> to_lines([Term("station", "Bahnhof")])
        'station\tBahnhof\n'
    """
    return "".join(f"{term.source}\t{term.target}\n" for term in terms)


def read_terms(path: str | os.PathLike) -> str:
    """The glossary of a file, which `parse_terms` can read."""
    terms = "\n".join(read_texts(path)[0])
    parse_terms(terms)
    return terms


def may_apply(text: str, terms: str) -> str:
    r"""The lines of a glossary whose words all stand in a text, in any case and order.

    A long glossary for many texts becomes a short one for each text, with the same matches.

    Example:
        >>> may_apply("The main station", "station\tBahnhof\nbus station\tBusbahnhof")
        'station\tBahnhof'
    """
    if not terms:
        return ""
    index = _by_first_unit(terms)
    inside = set(units(text.casefold()))
    lines = [x for unit in inside & index.keys() for x in index[unit] if x[1] <= inside]
    return "\n".join(line for _, _, line in sorted(lines, key=lambda x: x[0]))


@functools.lru_cache(8)
def _by_first_unit(terms: str) -> dict[str, list[tuple[int, set[str], str]]]:
    """The terms by their first unit: number, units and line of each."""
    index: dict[str, list[tuple[int, set[str], str]]] = {}
    for number, term in enumerate(parse_terms(terms)):
        words = units(term.source.casefold())
        index.setdefault(words[0], []).append((number, set(words), "\t".join(term)))
    return index
