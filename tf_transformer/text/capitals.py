"""Texts in capitals and texts in title case."""

import re
import unicodedata
from collections.abc import Callable

CAPITALS = ("Lu",)  # Unicode's categories
OTHER_LETTERS = ("Ll", "Lt", "Lm", "Lo")
NUMBERS = ("Nd", "Nl", "No")
SPACES = ("Zs", "Zl", "Zp", "Cc")

# Each character has a kind: A for a capital, a for another letter, 0, a space, or else a dot.
KINDS = {"A": CAPITALS, "a": OTHER_LETTERS, "0": NUMBERS, " ": SPACES}
OTHER_KIND = "."
# Patterns of kinds, in the syntax of Python and RE2.
IN_CAPITALS = r"[^a]*AA[^a]*"  # all letters are capitals, and two of them stand side by side
SHORT_WORD = " *A{2,3} *"
_WITHOUT_START = r"\.*(?:0[^ ]*)? "  # a word without a letter at its start, and a space
# Each word with a letter begins with a capital, and there are at least four: fewer may be a name.
IN_TITLE_CASE = rf"(?:(?:{_WITHOUT_START})*\.*A[^ ]* ){{4,}}(?:{_WITHOUT_START})*"
_START_OF_WORD = r"(?:^| )\.*a"
_START_OF_TEXT = r"^[ .]*a"

_KIND_OF = {category: kind for kind, categories in KINDS.items() for category in categories}


def is_short_word(text: str) -> bool:
    """Whether a text is one word of two or three capitals, like EU: often an acronym.

    A mark shows that a word is a sentence.

    Example:
        >>> is_short_word("WHO"), is_short_word("WHO?"), is_short_word("IT SUPPORT")
        (True, False, False)
    """
    return re.fullmatch(SHORT_WORD, _kinds(text)) is not None


def title(text: str) -> str:
    """Begins each word of a text with a capital; the other letters stay.

    Example:
        >>> title("es ist (wirklich) 5 uhr, 2nd time")
        'Es Ist (Wirklich) 5 Uhr, 2nd Time'
    """
    return _with_capitals(text, _START_OF_WORD)


def sentence(text: str) -> str:
    """Puts a text in lower case, and begins it with a capital. A model knows this form best.

    Example:
        >>> sentence("“IT’S” 5 PM"), sentence("5 PM")
        ('“It’s” 5 pm', '5 pm')
    """
    return _with_capitals(text.lower(), _START_OF_TEXT)


def form_of(text: str) -> Callable[[str], str] | None:
    """What puts other texts in the case of this text: `str.upper`, `title`, or None.

    Example:
        >>> form_of("IT'S 5 PM!"), form_of("It's NATO"), form_of("EU"), form_of("Martin L. King")
        (<method 'upper' of 'str' objects>, None, None, None)
        >>> form_of("Is It (Really) 5 O'clock?") is title
        True
    """
    if is_short_word(text):
        return None
    kinds = _kinds(text)
    if re.fullmatch(IN_CAPITALS, kinds):
        return str.upper
    return title if re.fullmatch(IN_TITLE_CASE, kinds + " ") else None


def _with_capitals(text: str, starts: str) -> str:
    """Makes the last character of each match of `starts`, a pattern of kinds, a capital."""
    letters = list(text)
    for start in re.finditer(starts, _kinds(text)):
        place = start.end() - 1
        letters[place] = letters[place].upper()
    return "".join(letters)


def _kinds(text: str) -> str:
    """The kind of each character."""
    categories = map(unicodedata.category, text)
    return "".join(_KIND_OF.get(category, OTHER_KIND) for category in categories)
