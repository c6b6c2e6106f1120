"""Inline codes of TMX: what stands in the text in place of each code of a document.

The elements are those of TMX 1.4b, section "Content Markup". A code in `bpt`, `ept` or `it` is half
of a pair, such as <b>, so it may stand inside a word. A code in `ph` stands alone, such as an
image, a line break, or a value that a program inserts. A code in `ut` is unknown.
"""

import html
import re
import unicodedata
from collections.abc import Mapping

from tf_transformer.text.placeholders import placeholders

SUBFLOW = "sub"  # an element inside a code that holds another text, such as a footnote
INSIDE = {"bpt", "ept", "it", "ph", "ut", SUBFLOW}  # whose content is not text of a segment

# Marks, which no XML can hold, until `without_marks` replaces them.
_JOIN = "\1"  # a code inside a word
_APART = "\0"  # a code between words
_SPACE = f"{_JOIN} "  # a code that is white space

_TAG = re.compile(r"<(?P<inside>[^<>]*)>")
_BREAK_TYPES = {"lb", "pb", "cb", "br", "linebreak", "pagebreak"}  # also values of "type"
_BREAKS = _BREAK_TYPES | {"hr", "p", "para", "simpara", "div", "h", "title", "subtitle", "pre"}
_BREAKS |= {"blockquote", "address", "section", "sect", "chapter", "article", "aside", "header"}
_BREAKS |= {"footer", "main", "nav", "body", "figure", "figcaption", "caption"}
_BREAKS |= {"table", "thead", "tbody", "tfoot", "tr", "td", "th", "row", "entry"}
_BREAKS |= {"ul", "ol", "li", "dl", "dt", "dd", "listitem", "img", "x"}
_BREAKS |= {"form", "fieldset", "legend", "label", "input", "select", "optgroup", "option"}
_RUNS = {"t", "bx", "ex", "wbr", "softhyphen"}  # tags that stand alone, but inside words
_CHARACTERS = {"nobreakhyphen": "-"}  # tags for a character
_ESCAPED_SPACE = re.compile(
    r"\{?(\\(n|r|t|~|line|softline|tab|pard?|sect|cell|row|page|column|e[mn]space)\s*)+\}?"
)
_RTF = re.compile(r"\\[a-z'*~_-]|\{\\|\}?$")  # start of a code in RTF; or no code at all
_TEMPLATE = re.compile(r"<%.*%>|<\?(=|php\b).*\?>", re.DOTALL)  # a value that a program inserts
_VALUE = re.compile(r"[%$#]|\{[{%]")  # start of a placeholder for a value
_VALUE_OR_NAME = re.compile(r"[%$#{]")
_LEADING_SPACE = re.compile(r"^(\\[nrt])+")  # as C writes it
_MARKER = re.compile(r"\{/?\w?\d*\}")  # a number for a tag, such as {1}; no value
_MARKS = re.compile(rf"(?<![ \t\r\n])[ \t\r\n]*[{_JOIN}{_APART}][ \t\r\n{_JOIN}{_APART}]*")
_WITHOUT_SPACES = (  # first words in the names of characters
    *("CJK", "IDEOGRAPHIC", "BOPOMOFO", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"),
)
# Punctuation that belongs to the next word, at the end of the text before a code.
_BEFORE = re.compile(
    r"""
      [(\[{¿¡„‚]\Z
    | (?<![\w.,;:!?…)\]}%])["'“”‘’«»‹›]\Z  # an opening quotation mark
    | \w['’/-]\Z                           # l'eau, and/or, well-known
    """,
    re.VERBOSE,
)
# Punctuation that belongs to the word before it, at the start of the text after a code.
_AFTER = re.compile(
    r"""
      [.,;:!?…)\]}"'“”‘’»«›‹؟،؛۔।॥](?!\w)
    | [/‐-](?=[^\W\d])                    # and/or, well-known
    | ['’]\w{1,2}\b(?!['’])               # it's
    """,
    re.VERBOSE,
)
_UNITS = re.compile(r"[%‰°](?!\w)")


def in_place_of(element: str, code: str) -> str:
    """Returns what stands in place of a code in an element such as "ph": marks, or its text.

    A value that a program inserts, such as %s, is text in every element. The code is without the
    text of `sub` elements.
    """
    text = html.unescape(code)
    if text.isspace() or _ESCAPED_SPACE.fullmatch(code):
        return _SPACE
    if _TEMPLATE.fullmatch(code):
        return code
    tags = list(_TAG.finditer(code))
    is_markup = bool(tags) or code.startswith("<")
    if element == "ph" and not is_markup and not _RTF.match(code):
        return text
    if _has_value(element, html.unescape(_TAG.sub("", code))):
        text = html.unescape(_TAG.sub(_in_place_of_tag, code))
        return _LEADING_SPACE.sub(lambda _: _SPACE, text)
    if is_markup or element != "ph":
        return "".join(map(_in_place_of_tag, tags)) or _JOIN
    return _APART


def _has_value(element: str, text: str) -> bool:
    """Whether a code that is not plain text holds a placeholder for the value of a program.

    A single brace in half of a pair does not count, because it is markup, such as {bold}.
    """
    start = _VALUE_OR_NAME if element in ("ph", "ut") else _VALUE
    codes = placeholders(" ".join(text.split()))
    is_value = any(start.match(value) and not _MARKER.fullmatch(value) for value in codes)
    return is_value and not text.startswith("{\\")


def start_of(element: str, attributes: Mapping[str, str]) -> str:
    """Returns a tag to put before a code: <lb> if the attribute "type" names a break, or "".

    A code in `ph` needs none, because it stands alone or is text.
    """
    kind = attributes.get("type", "").lower().removeprefix("x-")
    return "<lb>" if kind in _BREAK_TYPES and element not in ("ph", SUBFLOW) else ""


def _in_place_of_tag(tag: re.Match) -> str:
    name, *_ = tag["inside"].strip("/").split() or [""]
    name = name.rpartition(":")[2].rstrip("0123456789").lower()  # without the number in <br0/>
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    is_alone = name in _BREAKS or (tag["inside"].endswith("/") and name not in _RUNS)
    return _APART if is_alone else _JOIN


def without_marks(text: str) -> str:
    """Replaces marks and the spaces around them by one space, or by nothing.

    They become a space if there is a space among them. Codes between words do so, too, unless they
    touch punctuation that belongs to a word, or a script without spaces between words. At both
    ends of a text, nothing remains.
    """

    def replacement(marks: re.Match) -> str:
        start, end = marks.span()
        if start == 0 or end == len(text):
            return ""
        if marks[0].strip(_JOIN + _APART):
            return " "
        return " " if _APART in marks[0] and not _touch(text, start, end) else ""

    return _MARKS.sub(replacement, text) if _JOIN in text or _APART in text else text


def _touch(text: str, start: int, end: int) -> bool:
    """Whether the characters before `start` and from `end` on stand together without a space."""
    before, after = text[start - 1], text[end]
    return bool(
        _is_without_spaces(before)
        or _is_without_spaces(after)
        or _BEFORE.search(text, max(0, start - 2), start)
        or _AFTER.match(text, end)
        or (before.isdecimal() and (_UNITS.match(text, end) or unicodedata.category(after) == "Sc"))
        or (after.isdecimal() and unicodedata.category(before) == "Sc")
    )


def _is_without_spaces(character: str) -> bool:
    """Whether a character is of a script without spaces between words, or its punctuation."""
    is_wide = unicodedata.east_asian_width(character) in "WF"
    is_punctuation = unicodedata.category(character).startswith("P")
    name = unicodedata.name(character, "")
    return name.startswith(_WITHOUT_SPACES) or (is_wide and is_punctuation)
