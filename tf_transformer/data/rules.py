"""Faults of pairs of sentences: one rule each, for `tf-transformer inspect` and for `data.clean`.

A rule says of a pair whether it has the fault. All but `language` need neither languages nor a
trained model, so they say the same on every machine. Raise `VERSION` with each change of what a
rule finds.
"""

import html.entities
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from tf_transformer.data import detected_languages, opusfilter
from tf_transformer.data.detected_languages import OtherLanguages
from tf_transformer.data.readers import Languages
from tf_transformer.data.text_keys import KeySet, pair_key
from tf_transformer.errors import InputError
from tf_transformer.text.placeholders import placeholders

Test = Callable[[str, str], bool]
"""test(source, target): whether the pair has the fault."""

VERSION = 2
DUPLICATE = "duplicate"  # the rule that needs all pairs
LANGUAGE = "language"  # the rule that detects languages, which takes long
RECOMMENDED = "recommended"  # stands for all rules that are recommended
OF_OPUSFILTER = "a filter of OpusFilter rejects"  # the help of each of its filters
NONE = "none"  # alone: for a corpus without rules
_FACTOR, _SLACK = 3, 10  # the longer side has at most 3 · shorter + 10 bytes, as in text/faults.py
_FEWEST_COPIED = 3  # words: shorter copies are often names
_LARGEST_SPELLED = 12  # numbers up to here are often words on one side

_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<\s*(/?)\s*([A-Za-z][\w:.-]*)[^<>]*?(/?)\s*>")
_NUMBER = re.compile(r"(?<![\w%{#.,])\d+(?:[.,:'’\u00a0\u202f]\d+)*")
_CENTS = re.compile(r"[.,:]00$")
_OF_MOSES = ("apos", "quot", "amp", "lt", "gt", "#91", "#93", "#124")  # its names of entities
_MOSES = re.compile(rf"&(?:{'|'.join(_OF_MOSES)});|(?<=\S) @[-/]@ (?=\S)|##AT##")
_ENTITY = re.compile(r"&((?:amp;)*)(#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,31});")
_MAY_HOLD = re.compile(r"[]%{}$#[<>&\\@]|:[a-z_]|__")  # a placeholder
_CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f]")


def _misread(*encodings: str) -> str:
    """A pattern of UTF-8 of two or three bytes that was read in one of these encodings.

    It finds Latin letters and punctuation alone, because other such sequences occur in sound text,
    as in „FPÖ“. For the same reason, π is not part of it, as in √π.
    """

    def characters(first: int, last: int) -> str:
        codes = bytes(range(first, last + 1))
        read = "".join(codes.decode(name, "ignore") for name in encodings)
        return f"[{re.escape(read.replace('π', ''))}]"

    rest = characters(0x80, 0xBF)
    of_three = characters(0xE2, 0xE2) + characters(0x80, 0x84) + rest
    return f"{characters(0xC2, 0xC3)}{rest}|{of_three}"


_MISREAD = re.compile(
    f"{_misread('cp1252', 'latin-1')}"  # ü as Ã¼, ’ as â€™
    f"|{_misread('cp850', 'cp437')}"  # ü as ├╝
    f"|{_misread('mac-roman')}"  # ü as √º
    # Bytes 0x80 to 0x9F as Latin-1 reads them are control characters; U+0085 is a line break.
    "|[\x80-\x84\x86-\x9f\ufffd]"
)
# A letter that became a question mark, as in k?nnen.
_LOST = re.compile(r"(?<![^\s(\"'„“«])[^\W\d_]+\?[a-zß-ÿ]")


class Duplicates:
    """Whether an earlier pair of the same pass has the same texts."""

    def __init__(self) -> None:
        self._keys = KeySet()

    def __call__(self, source: str, target: str) -> bool:
        return not self._keys.add(pair_key(source, target))


def is_identical(source: str, target: str) -> bool:
    """Whether both sides have the same words. Copies of one or two words are often names."""
    words = _words(source)
    return len(words) >= _FEWEST_COPIED and words == _words(target) and _has_letters(source)


def is_out_of_proportion(source: str, target: str) -> bool:
    """Whether a side has over three times as many bytes in UTF-8 as the other, and ten more."""
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in (source, target)]
    return max(sizes) > _FACTOR * min(sizes) + _SLACK


def is_misread(source: str, target: str) -> bool:
    """Whether a side was decoded by the wrong encoding, or lost characters became U+FFFD or ?."""
    return any(
        (not text.isascii() and _MISREAD.search(text)) or ("?" in text and _LOST.search(text))
        for text in (source, target)
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
        name.startswith("#") or f"{name};" in html.entities.html5
        for text in (source, target)
        if "&" in text
        for escapes, name in _ENTITY.findall(text)
        if escapes or name not in _OF_MOSES
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
        start: makes the test for one pass over pairs, from the languages of source and target.
        recommended: whether `recommended` names the rule: the fault teaches a model wrong
            translations, and sound pairs rarely have it.
        needs_languages: whether `start` raises an `InputError` if it cannot detect the languages.
        version: gives the version of the package that tests pairs; "": this one.
    """

    help: str
    start: Callable[[Languages], Test]
    recommended: bool = False
    needs_languages: bool = False
    version: Callable[[], str] = str


def _rule(help: str, test: Test, recommended: bool = False) -> Rule:
    """A rule whose test needs no languages and remembers no pairs."""
    return Rule(help, lambda languages: test, recommended)


RULES = {
    DUPLICATE: Rule("an earlier pair has the same texts", lambda _: Duplicates(), True),
    "identical": _rule("both sides are the same three words or more", is_identical, True),
    "length_ratio": _rule("one side is over three times as long", is_out_of_proportion, True),
    "wrong_encoding": _rule("wrongly decoded, such as Ã¼, k?nnen or U+FFFD", is_misread, True),
    "no_letters": _rule("one side has no letters", lacks_letters, True),
    "tags": _rule("tags of XML or HTML differ", has_other_tags, True),
    LANGUAGE: Rule(
        "a side is surely in another language",
        lambda x: OtherLanguages(*x),
        needs_languages=True,
        version=detected_languages.version,
    ),
    "numbers": _rule("numbers above 12 differ", has_other_numbers),
    "placeholders": _rule("placeholders such as %s or {name} differ", has_other_placeholders),
    "moses_escapes": _rule("marks of Moses, such as &apos; or @-@", has_moses_escapes),
    "html_entities": _rule("entities of HTML, such as &nbsp;", has_entities),
    "unicode_form": _rule("letters and marks that are not composed (NFC)", is_decomposed),
    "control_characters": _rule("control characters", has_control_characters),
}


def chosen(names: Collection[str]) -> dict[str, Rule]:
    """The rules with these names, in the order of `RULES`, and then those of OpusFilter.

    A name may be the path of a configuration of OpusFilter. An unknown name is an `InputError`.

    Example:
        >>> list(chosen(["numbers", "identical"]))
        ['identical', 'numbers']
    """
    wanted = {name for name in names if not is_file(name)}
    read = [opusfilter.read(name) for name in names if is_file(name)]
    if wanted == {NONE} and not read:
        return {}
    if unknown := wanted - {*RULES, RECOMMENDED}:
        raise InputError(
            f"data.clean has no rule {min(unknown)!r}; expected {RECOMMENDED}, {NONE}, or some of "
            f"{', '.join(RULES)}, or a .yaml file of OpusFilter."
        )
    if any(removes_duplicates for removes_duplicates, _ in read):
        wanted.add(DUPLICATE)
    everything = RECOMMENDED in wanted
    of_this_project = {
        name: rule
        for name, rule in RULES.items()
        if name in wanted or (everything and rule.recommended)
    }
    return of_this_project | {each.name: _of_opusfilter(each) for _, x in read for each in x}


def is_file(name: str) -> bool:
    """Whether the name of a rule is the path of a configuration of OpusFilter."""
    return name.endswith(opusfilter.ENDINGS)


def _of_opusfilter(given: opusfilter.Filter) -> Rule:
    return Rule(OF_OPUSFILTER, lambda _: given.start(), version=opusfilter.version)


def identity(rules: Mapping[str, Rule], languages: Languages) -> str:
    """A text that changes when the rules may find other pairs of a corpus in these languages."""
    named = [str(VERSION), *rules]
    if any(rule.needs_languages for rule in rules.values()):
        named.append(str(languages))
    return " ".join([*named, *filter(None, {rule.version(): 0 for rule in rules.values()})])


def faults(tests: dict[str, Test], source: str, target: str) -> list[str]:
    """The names of the tests that a pair fails. Each test sees each pair."""
    return [name for name, test in tests.items() if test(source, target)]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


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
