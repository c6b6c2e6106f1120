"""Divides texts into sentences and the white space between them, by rules.

`re` and RE2 read the rules alike, so that graphs find the same sentences; see `graph_splitter`.
First, `MARKS` and `MERGES` divide a text into words and the spaces between them; tags of blocks of
HTML, such as <br> and </p>, belong to a space. Then `boundaries` decide for each space, with the
word before it and the word after it, whether a sentence ends there.
"""

import functools
import re
from collections.abc import Iterable

from tf_transformer.text.abbreviations import BY_LANGUAGE, OF_ALL
from tf_transformer.text.capitals import CAPITALS, NUMBERS
from tf_transformer.text.kept_spans import BLOCK_TAG
from tf_transformer.text.normalization import LETTERS, WHITE_SPACE, literal_class_of

Marks = tuple[tuple[str, str], ...]
"""Patterns and their replacements, applied in order."""
Rules = tuple[tuple[str, bool], ...]
"""Patterns of a word, NUL, a space, NUL and the next word, and whether a sentence ends there."""

_SPACES = WHITE_SPACE[1:-1]
_FULL_WIDTH = "。！？｡"  # ends of sentences without a space after them
MARK = "\0"  # between words and spaces; texts contain no NUL, see `normalization.clean`
MARKS = (
    (f"({BLOCK_TAG}|{WHITE_SPACE}+)", rf"{MARK}\1{MARK}"),
    (f"([{_FULL_WIDTH}]+[」』”’）]*)", rf"\1{MARK}{MARK}"),
)
# What a tag that is kept becomes.
BLOCK_MARK = (f"^({BLOCK_TAG})$", rf"{MARK}\1{MARK}")
_JOIN = (rf"([>{_SPACES}])\x00\x00([<{_SPACES}])", r"\1\2")  # tags and white space are one space
MERGES = (
    (r"\x00\x00\x00", MARK),  # white space follows a full-width mark
    *(_JOIN, _JOIN),  # matches do not overlap: the second time for a single space between two tags
    (r"\x00\x00$", ""),
    ("\\x00([ \u00a0\u202f])\\x00([»”]+)(\\x00|$)", r"\1\2\3"),  # French quotation marks
)
# Those that divide a long sentence into clauses.
CLAUSE_MARKS = (
    (f"""([,;:،؛–—]["'”’»)\\]]*)({WHITE_SPACE}+)""", rf"\1{MARK}\2{MARK}"),
    (r"([，、；：])([^\x00])", rf"\1{MARK}{MARK}\2"),
)
WORD_MARKS = ((f"({WHITE_SPACE}+)", rf"{MARK}\1{MARK}"),)
LINE_ENDS = "\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
_TAG = r"<[^<>\x00]*>"
_OPENING = rf"""(?:["'“”„‟‘’‚‛«»‹›(\[{{¿¡*_\-–—]|{_TAG})*"""
_CLOSING = f"(?:[ \u00a0\u202f\"'“”„‘’«»‹›」』）)\\]}}*_]|{_TAG})*"
_QUOTE = """["'“”’»«›‹]"""
STOPS = ".!?…‥؟۔।॥։።\u037e" + _FULL_WIDTH
# What a text with several sentences has.
END = rf"[{STOPS}][^{_SPACES}{STOPS}]*{WHITE_SPACE}|[{_FULL_WIDTH}]"
_ANY = r"[^\x00]*"


@functools.cache
def boundaries(language: str) -> Rules:
    """The rules of a language such as en, eng or en-GB; the first that matches counts.

    If none matches, no sentence ends. A language without abbreviations of its own, such as "", has
    the abbreviations of all languages.
    """
    code = re.split("[-_]", language.lower())[0]
    own = BY_LANGUAGE.get(code, OF_ALL)
    letter, starting = (
        literal_class_of(LETTERS),
        literal_class_of((*CAPITALS, "Lt", "Lm", "Lo", *NUMBERS)),
    )
    before = rf"\x00{_ANY}\x00{_OPENING}"
    initials = rf"(?:[{letter}]\.-?)*[{letter}]"
    starters = _any_of(map(_with_capital, own.starters.split()))
    weak = "|".join([initials, _words(own.others), *["[0-9]{1,2}"] * own.ordinals])
    return (
        (rf"{_ANY}[」』]\x00\x00[ぁ-ん、，]{_ANY}", False),  # Japanese: と or が after a quotation
        (rf"{_ANY}\x00(?:{_ANY}[<{LINE_ENDS}]{_ANY})?\x00{_ANY}", True),
        (rf"\x00{_ANY}\x00{_ANY}|{_ANY}\x00{_ANY}\x00", True),  # space at an end of the text
        (rf"{_ANY}[{STOPS}]{_QUOTE}\x00{_ANY}\x00[-–—]", False),  # a dialogue: „Wo?“ – „Da.“
        (rf"{_OPENING}(?:{_words(own.titles)})\.{before}{_ANY}", False),
        (rf"{_OPENING}(?:{_words(own.before_numbers)})\.{before}[0-9]{_ANY}", False),
        (
            rf"{_OPENING}(?:{weak})\.{before}(?:{starters})(?:[^\x00.{letter}]{_ANY})?",
            True,
        ),
        (rf"{_OPENING}(?:{weak})\.{before}{_ANY}", False),
        (rf"{_ANY}[{STOPS}{own.marks}]{_CLOSING}{before}(?:[{starting}]{_ANY})?", True),
    )


class SentenceSplitter:
    r"""Divides texts of a language into sentences.

    Args:
        language: a code such as en. Abbreviations are known in some languages; see `boundaries`.
        kept: a pattern, in the syntax of `re` and RE2, of spans that no sentence ends in; "": none.

    Example:
        >>> SentenceSplitter("en").split("Mr. T. left.\n\nMary  stayed. He’s here.")
        ['Mr. T. left.', '\n\n', 'Mary  stayed.', ' ', 'He’s here.']
    """

    def __init__(self, language: str = "", kept: str = ""):
        self._rules = [(re.compile(pattern), ends) for pattern, ends in boundaries(language)]
        self._kept = kept

    def split(self, text: str) -> list[str]:
        """Divides a text without NUL: sentence, space, sentence, and so on; joined, it is the text.

        A sentence at an end of the text is "" if white space stands there. A space is "" after a
        full-width mark. Tags of blocks belong to the space.
        """
        text = marked(text, MARKS, self._kept)
        pieces = marked(text, MERGES).split(MARK)
        for place in range(1, len(pieces), 2):
            if self._ends(MARK.join(pieces[place - 1 : place + 2])):
                pieces[place] = MARK + pieces[place] + MARK
        return "".join(pieces).split(MARK)

    def _ends(self, place: str) -> bool:
        """Whether a sentence ends at a word, NUL, a space, NUL and the next word."""
        return next((ends for rule, ends in self._rules if rule.fullmatch(place)), False)


def marked(text: str, marks: Marks, kept: str = "") -> str:
    """Replaces the patterns of marks in a text, outside of the matches of the pattern `kept`."""
    sub = functools.partial(re.sub, flags=re.ASCII)  # patterns mean what they mean in RE2
    pieces = sub(f"({kept})", rf"{MARK}\1{MARK}", text).split(MARK) if kept else [text]
    for pattern, replacement in marks:
        pieces[::2] = [sub(pattern, replacement, piece) for piece in pieces[::2]]
    pieces[1::2] = [sub(*BLOCK_MARK, piece) for piece in pieces[1::2]]
    return "".join(pieces)


def _words(words: str) -> str:
    """A pattern of words with a space between them, and of their forms with a capital."""
    return _any_of([*words.split(), *map(_with_capital, words.split())])


def _any_of(words: Iterable[str]) -> str:
    """A pattern of words, which matches nothing if there are none."""
    return "|".join(map(re.escape, sorted(set(words)))) or r"\x00"


def _with_capital(word: str) -> str:
    return word[0].upper() + word[1:]
