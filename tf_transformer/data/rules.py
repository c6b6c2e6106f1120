"""Faults of pairs of sentences: one rule each, for `tf-transformer inspect` and for `data.clean`.

A rule says of a pair whether it has the fault. Rules need no language and no trained model, so they
say the same on every machine. Raise `VERSION` with each change of what a rule finds.
"""

import html.entities
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tf_transformer.data.text_keys import pair_key
from tf_transformer.errors import InputError
from tf_transformer.text.placeholders import placeholders

Test = Callable[[str, str], bool]
"""test(source, target): whether the pair has the fault."""

VERSION = 1
RECOMMENDED = "recommended"  # stands for all rules that are recommended
NONE = "none"  # alone: for a corpus without rules
_FACTOR, _SLACK = 3, 10  # the longer side has at most 3 · shorter + 10 bytes, as in text/faults.py
_FEWEST_COPIED = 3  # words: shorter copies are often names
_LARGEST_SPELLED = 12  # numbers up to here are often words on one side

_TAG = re.compile(r"<\s*(/?)\s*([A-Za-z][\w:.-]*)[^<>]*?(/?)\s*>")
_NUMBER = re.compile(r"(?<![\w%{#.,])\d+(?:[.,:'’\u00a0\u202f]\d+)*")
_CENTS = re.compile(r"[.,:]00$")
_MOSES = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);|(?<=\S) @[-/]@ (?=\S)|##AT##")
_ENTITY = re.compile(r"&(#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,31});")
_MAY_HOLD = re.compile(r"[]%{}$#[<>&\\@]|:[a-z_]|__")  # a placeholder
_CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f]")


def _as_windows_1252(first: int, last: int) -> str:
    """The characters that bytes become when Windows-1252 or Latin-1 reads them, for a class."""
    codes = range(first, last + 1)
    latin = "".join(map(chr, codes))
    return re.escape(latin + bytes(codes).decode("cp1252", "ignore"))


# UTF-8 of two or three bytes that was read as Windows-1252: ü as Ã¼, ’ as â€™. Latin letters and
# punctuation alone, because other such pairs of characters occur in sound text, as in „FPÖ“.
_CONTINUATION = f"[{_as_windows_1252(0x80, 0xBF)}]"
# Bytes 0x80 to 0x9F as Latin-1 reads them are control characters; U+0085 is a line break.
_MISREAD = re.compile(
    f"[ÂÃ]{_CONTINUATION}|â[{_as_windows_1252(0x80, 0x84)}]{_CONTINUATION}"
    "|[\x80-\x84\x86-\x9f\ufffd]"
)


class Duplicates:
    """Whether an earlier pair of the same pass has the same texts.

    Holds a key of 64 bits for each distinct pair.
    """

    def __init__(self) -> None:
        self._keys = set[int]()

    def __call__(self, source: str, target: str) -> bool:
        count = len(self._keys)
        self._keys.add(pair_key(source, target))
        return len(self._keys) == count


def is_identical(source: str, target: str) -> bool:
    """Whether both sides are equal. Copies of one or two words are often names."""
    words = source.split()
    return len(words) >= _FEWEST_COPIED and words == target.split() and _has_letters(source)


def is_out_of_proportion(source: str, target: str) -> bool:
    """Whether a side has over three times as many bytes in UTF-8 as the other, and ten more."""
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in (source, target)]
    return max(sizes) > _FACTOR * min(sizes) + _SLACK


def is_misread(source: str, target: str) -> bool:
    """Whether a side was decoded by the wrong encoding, or has U+FFFD in place of a character."""
    return any(
        not text.isascii() and _MISREAD.search(text) is not None for text in (source, target)
    )


def lacks_letters(source: str, target: str) -> bool:
    """Whether one side has letters, and the other has none."""
    return _has_letters(source) != _has_letters(target)


def has_other_tags(source: str, target: str) -> bool:
    """Whether the names of the tags of XML or HTML differ between the sides."""
    return ("<" in source or "<" in target) and _tags(source) != _tags(target)


def has_other_numbers(source: str, target: str) -> bool:
    """Whether the numbers above 12 differ. 1,250.50 and 1.250,50 are equal."""
    return _numbers(source) != _numbers(target)


def has_other_placeholders(source: str, target: str) -> bool:
    """Whether the placeholders of programs, such as %s and {name}, differ."""
    if not (_MAY_HOLD.search(source) or _MAY_HOLD.search(target)):
        return False
    return placeholders(source) != placeholders(target)


def has_moses_escapes(source: str, target: str) -> bool:
    """Whether a side has the marks that the tokenizer of Moses writes."""
    return any(_MOSES.search(text) for text in (source, target))


def has_entities(source: str, target: str) -> bool:
    """Whether a side has an entity of HTML that Moses does not write."""
    return any(
        (name := match[1]).startswith("#") or f"{name};" in html.entities.html5
        for text in (source, target)
        if "&" in text
        for match in _ENTITY.finditer(_MOSES.sub(" ", text))
    )


def is_decomposed(source: str, target: str) -> bool:
    """Whether a side is not in the Unicode form NFC."""
    return not all(unicodedata.is_normalized("NFC", text) for text in (source, target))


def has_control_characters(source: str, target: str) -> bool:
    """Whether a side has a control character other than tab and newline."""
    return any(_CONTROL.search(text) for text in (source, target))


class Rule(NamedTuple):
    """A fault of pairs.

    Attributes:
        help: the fault in a few words.
        test: a function of a pair, or a class of such functions that remember a pass.
        recommended: whether `recommended` names the rule: the fault teaches a model wrong
            translations, and sound pairs rarely have it.
    """

    help: str
    test: Test | type[Duplicates]
    recommended: bool = False

    def start(self) -> Test:
        """The test for one pass over pairs."""
        return self.test() if isinstance(self.test, type) else self.test


RULES = {
    "duplicate": Rule("an earlier pair of the corpus has the same texts", Duplicates, True),
    "identical": Rule("both sides are the same three words or more", is_identical, True),
    "length_ratio": Rule("one side is over three times as long", is_out_of_proportion, True),
    "wrong_encoding": Rule("wrongly decoded, such as Ã¼ or U+FFFD", is_misread, True),
    "no_letters": Rule("one side has no letters", lacks_letters, True),
    "tags": Rule("tags of XML or HTML differ", has_other_tags, True),
    "numbers": Rule("numbers above 12 differ", has_other_numbers),
    "placeholders": Rule("placeholders such as %s or {name} differ", has_other_placeholders),
    "moses_escapes": Rule("marks of Moses, such as &apos; or @-@", has_moses_escapes),
    "html_entities": Rule("entities of HTML, such as &nbsp;", has_entities),
    "unicode_form": Rule("letters and marks that are not composed (NFC)", is_decomposed),
    "control_characters": Rule("control characters", has_control_characters),
}


def chosen(names: Iterable[str]) -> dict[str, Rule]:
    """The rules with these names, in the order of `RULES`. An unknown name is an `InputError`.

    Example:
        >>> list(chosen(["numbers", "identical"]))
        ['identical', 'numbers']
    """
    wanted = set(names)
    if wanted == {NONE}:
        return {}
    if unknown := wanted - {*RULES, RECOMMENDED}:
        raise InputError(
            f"data.clean has no rule {min(unknown)!r}; expected {RECOMMENDED}, {NONE}, or some of "
            f"{', '.join(RULES)}."
        )
    everything = RECOMMENDED in wanted
    return {
        name: rule
        for name, rule in RULES.items()
        if name in wanted or (everything and rule.recommended)
    }


def faults(tests: dict[str, Test], source: str, target: str) -> list[str]:
    """The names of the tests that a pair fails. Each test sees each pair."""
    return [name for name, test in tests.items() if test(source, target)]


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _tags(text: str) -> Counter[tuple[str, ...]]:
    return Counter(_TAG.findall(text.lower()))


def _numbers(text: str) -> Counter[int]:
    """The numbers of a text above 12, without separators and without cents of zero."""
    values = (
        int("".join(filter(str.isdecimal, _CENTS.sub("", found))))
        for found in _NUMBER.findall(text)
    )
    return Counter(value for value in values if value > _LARGEST_SPELLED)
