"""Texts in capitals and texts in title case.

The program for CTranslate2 runs this file by its path, so it imports the standard library only.
"""

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
IN_CAPITALS = r"[^a]*AA[^a]*"
SHORT_WORD = " *A{2,3} *"
_WITHOUT_START = r"\.*(?:0[^ ]*)? "  # a word without a letter at its start, and a space
IN_TITLE_CASE = rf"(?:(?:{_WITHOUT_START})*\.*A[^ ]* ){{4,}}(?:{_WITHOUT_START})*"
_START_OF_WORD = r"(?:^| )\.*a"
_START_OF_TEXT = r"^[ .]*a"

_KIND_OF = {category: kind for kind, categories in KINDS.items() for category in categories}


def in_capitals(text: str) -> bool:
    """Whether all letters of a text are capitals, and two of them stand side by side.

    Example:
        >>> in_capitals("IT'S 5 PM!"), in_capitals("I 5"), in_capitals("It's NATO")
        (True, False, False)
    """
    return re.fullmatch(IN_CAPITALS, _kinds(text)) is not None


def is_short_word(text: str) -> bool:
    """Whether a text is one word of two or three capitals, like EU: often an acronym.

    A mark shows that a word is a sentence.

    Example:
        >>> is_short_word("WHO"), is_short_word("WHO?"), is_short_word("IT SUPPORT")
        (True, False, False)
    """
    return re.fullmatch(SHORT_WORD, _kinds(text)) is not None


def in_title_case(text: str) -> bool:
    """Whether at least four words have letters, and each of them begins with a capital.

    Fewer words may be a name. Words that begin with a number do not count.

    Example:
        >>> in_title_case("Is It (Really) 5 O'clock?"), in_title_case("Martin Luther King")
        (True, False)
    """
    return re.fullmatch(IN_TITLE_CASE, _kinds(text) + " ") is not None


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
        >>> form_of("HELLO!"), form_of("Hello!"), form_of("EU")
        (<method 'upper' of 'str' objects>, None, None)
    """
    if is_short_word(text):
        return None
    if in_capitals(text):
        return str.upper
    return title if in_title_case(text) else None


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
