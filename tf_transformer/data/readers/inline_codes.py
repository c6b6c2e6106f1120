"""Inline codes of TMX: what stands in the text in place of each code of a document.

The elements are those of TMX 1.4b, section "Content Markup". A code in `bpt`, `ept` or `it` is half
of a pair, such as <b>, so it may stand inside a word. A code in `ph` stands alone, such as an
image, a line break, or a value that a program inserts. A code in `ut` is unknown.
"""

import html
import re

SUBFLOW = "sub"  # an element inside a code that holds another text, such as a footnote
INSIDE = {"bpt", "ept", "it", "ph", "ut", SUBFLOW}  # elements whose content is no text of a segment

# Marks, which no XML can hold, until `without_marks` replaces them.
_JOIN = "\1"  # a code inside a word
_APART = "\0"  # a code between words
_SPACE = f"{_JOIN} "  # a code that is white space

_TAG = re.compile(r"<(?P<inside>[^<>]*)>")
_BREAKS = {"br", "lb", "hr", "p", "div", "h", "table", "tr", "td", "th"}
_BREAKS |= {"ul", "ol", "li", "dt", "dd", "img", "input", "x"}
_RUNS = {"t", "bx", "ex", "wbr"}  # tags that stand alone, but inside words
_ESCAPED_SPACE = re.compile(r"(\\(n|r|t|~|line|tab|par|cell|row|page|column)\s*)+")
_RTF = re.compile(r"\\[a-z'*~_-]|\{\\|\}?$")  # start of a code in RTF; or no code at all
_MARKS = re.compile(rf"(?<![ \t\r\n])[ \t\r\n]*[{_JOIN}{_APART}][ \t\r\n{_JOIN}{_APART}]*")
_OPENING = "([{¿¡"
_CLOSING = re.compile(r"[.,;:!?…)\]}](?!\w)")


def in_place_of(element: str, code: str) -> str:
    """Returns what stands in place of a code: a mark, or the code itself if it is text.

    Args:
        element: the element of the code, such as "ph".
        code: the code, without the text of `sub` elements.

    Example:
        >>> codes = [("bpt", "<b>"), ("ept", "</b>"), ("ph", "<br/>"), ("ph", "%d")]
        >>> begin, end, line, value = [in_place_of(*code) for code in codes]
        >>> without_marks(f"un{begin}do{end}ne,{line}you have {value} lines")
        'undone, you have %d lines'
    """
    text = html.unescape(code)
    if text.isspace() or _ESCAPED_SPACE.fullmatch(code):
        return _SPACE
    tags = list(_TAG.finditer(code))
    if tags or code.startswith("<"):
        return _APART if any(map(_stands_alone, tags)) else _JOIN
    if element != "ph":
        return _JOIN
    return _APART if _RTF.match(code) else text


def _stands_alone(tag: re.Match) -> bool:
    name, *_ = tag["inside"].strip("/").split() or [""]
    name = name.rpartition(":")[2].rstrip("0123456789").lower()  # without the number in <br0/>
    return name in _BREAKS or (tag["inside"].endswith("/") and name not in _RUNS)


def without_marks(text: str) -> str:
    """Replaces marks and the spaces around them by one space, or by nothing.

    They become a space if there is a space among them. Codes between words do so, too, unless they
    touch punctuation that belongs to the next word. At both ends of a text, nothing remains.
    """

    def replacement(marks: re.Match) -> str:
        start, end = marks.span()
        if start == 0 or end == len(text):
            return ""
        touches = text[start - 1] in _OPENING or _CLOSING.match(text, end)
        has_space = marks[0].strip(_JOIN + _APART)
        return " " if has_space or (_APART in marks[0] and not touches) else ""

    return _MARKS.sub(replacement, text) if _JOIN in text or _APART in text else text
