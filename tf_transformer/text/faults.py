"""Faults of a translation that its text shows: loops, copies, scripts, numbers, lengths."""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\w+")
_WHOLE_WORD = re.compile(r"\w(?:\S*\w)?")  # with marks inside, as in addresses
_STUTTER = re.compile(r"(.{1,12}?)\1{5,}")  # the same few characters six times in a row
_LONGEST_PHRASE = 12  # words
_FEWEST_COPIED = 3  # words: shorter copies are often names
_COPIED = 0.8  # share of the words of a translation that a text has
# Digits with marks between them, without .00. The digits of codes such as A4 and %1 are no numbers.
_NUMBER = re.compile(
    r"(?<![\w%{])(?<!&#)(\d+(?:[.,:'’\u00a0\u202f]\d+)*?)(?:[.,:]00)?(?![.,:'’\u00a0\u202f]?\d)"
)
_LARGEST_IN_WORDS = 12  # up to this, one of two languages often has a word
_LATIN = re.compile(r"[A-Za-z\xc0-\u024f]{2,}")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\0-\u024f\u1e00-\u1eff]{2,}")
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL")
_FACTOR, _SLACK = 3, 10  # the longer of two texts has at most 3 · shorter + 10 bytes


def has_loop(source: str, translation: str) -> bool:
    """Whether a translation repeats a word or a phrase in a row, where its text does not.

    It has a phrase of three words or more twice in a row, or a shorter one three times.

    Example:
        >>> has_loop("a small house", "ein kleines Haus, ein kleines Haus")
        True
        >>> has_loop("very, very, very good", "sehr, sehr, sehr gut")
        False
    """
    if _STUTTER.search(translation) and not _STUTTER.search(source):
        return True
    words = _WORD.findall(translation.casefold())
    if len(set(pairs := list(itertools.pairwise(words)))) == len(pairs):
        return False  # no two words stand in it twice
    before = _WORD.findall(source.casefold())
    return any(
        (times := _times_in_a_row(words, sizes)) >= fewest
        and times > _times_in_a_row(before, sizes)
        for fewest, sizes in ((3, (1, 2)), (2, range(3, _LONGEST_PHRASE + 1)))
    )


def _times_in_a_row(words: Sequence[str], sizes: Iterable[int]) -> int:
    """How often a phrase of one of some numbers of words stands in a row; 1 if none is repeated."""
    times = 1
    for size in sizes:
        equal = 0
        for word, later in zip(words, words[size:], strict=False):
            equal = equal + 1 if word == later else 0
            times = max(times, equal // size + 1)
    return times


def is_copy(source: str, translation: str) -> bool:
    """Whether a translation has the words of its text; one or two words may be a name.

    Example:
        >>> is_copy("Where is the station?", "Where is the Station?"), is_copy("Tom!", "Tom!")
        (True, False)
    """
    words = _WHOLE_WORD.findall(translation.casefold())
    if len(words) < _FEWEST_COPIED or not any(map(str.isalpha, words)):
        return False
    common = Counter(words) & Counter(_WHOLE_WORD.findall(source.casefold()))
    return common.total() > _COPIED * len(words)


def numbers(text: str) -> Counter[str]:
    """Counts the numbers above 12 of a text by their digits: 1,000.5 and 1.000,5 are equal.

    Example:
        >>> sorted(numbers("On May 5, 1,250 people paid 3.50 in room A40."))
        ['1250', '350']
    """
    found = (
        "".join(str(unicodedata.digit(x)) for x in match if x.isdecimal()).lstrip("0")
        for match in _NUMBER.findall(text)
    )
    return Counter(x for x in found if len(x) > 2 or int(x or 0) > _LARGEST_IN_WORDS)


def has_foreign_script(source: str, translation: str) -> bool:
    """Whether a translation has a word in another script than the rest, which its text has not.

    Latin words stand in texts of all scripts, so they do not count.

    Example:
        >>> has_foreign_script("a small house", "ein маленький Haus")
        True
    """
    scripts = _scripts(translation)
    if not scripts:
        return False
    scripts["LATIN"] = len(_LATIN.findall(translation))
    ((main, _),) = scripts.most_common(1)
    return bool(set(scripts) - {main, "LATIN"} - set(_scripts(source)))


def _scripts(text: str) -> Counter[str]:
    """The numbers of words in scripts other than Latin, by the first word of a letter's name."""
    counts = Counter[str]()
    for word in _OTHER_SCRIPT.findall(text):
        name = unicodedata.name(word[0], "").partition(" ")[0]
        is_east_asian = name in _EAST_ASIAN  # these scripts are mixed, without spaces
        counts["CJK" if is_east_asian else name] += len(word) if is_east_asian else 1
    return counts


def is_out_of_proportion(source: str, translation: str) -> bool:
    """Whether a translation has more than three times, or less than a third, of its text's bytes.

    Example:
        >>> is_out_of_proportion("Where is the station?", "Wo?")
        True
    """
    shorter, longer = sorted(len(text.encode("utf-8", "replace")) for text in (source, translation))
    return longer > _FACTOR * shorter + _SLACK
