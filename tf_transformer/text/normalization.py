"""`nmt_nfc`: texts that look equal become equal.

- Each white-space character becomes a space.
- Control and format characters are deleted, such as soft hyphens, zero-width spaces and byte-order
  marks. Some format characters are visible or join others, and stay: joiners (U+200C, U+200D), the
  tags of flags, Arabic, Syriac and Kaithi number signs, and the layout of hieroglyphs.
- A letter is composed with its combining marks as in Unicode's NFC. The marks may stand in any
  canonically equivalent order. A mark stays as it is if no composed letter has it.

SentencePiece applies the rules and stores them in its model. So Python and graphs agree, and the
rules of a model do not change with the version of Unicode in Python.
"""

import functools
import itertools
import pathlib
import re
import sys
import tempfile
import unicodedata

import sentencepiece

from tf_transformer.text.capitals import CAPITALS, OTHER_LETTERS
from tf_transformer.text.target_tag import BLANK

NMT_NFC = "nmt_nfc"
# A SentencePiece model whose normalizer has this name, and no path to a table.
_NAME = b"\x1a\x0b" + b"\n\x07nmt_nfc" + b"2\x00"
LETTERS = CAPITALS + OTHER_LETTERS
MARKS = ("Mn", "Mc", "Me")
# The characters of `str.isspace`, in the syntax of Python and RE2.
WHITE_SPACE = "[\t\n\v\f\r\x1c-\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_KEPT = {
    *map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x200C, 0x200D)),
    *map(chr, (0x110BD, 0x110CD, *range(0x13430, 0x13440), *range(0xE0020, 0xE0080))),
}
# Format characters, and the first words in the names of characters of the scripts that need them.
# NEW is that of New Tai Lue.
_OF_SCRIPTS = {
    "\u200b\u2060": ("JAVANESE", "KHMER", "LAO", "MYANMAR", "NEW", "TAI", "THAI", "TIBETAN"),
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069": (
        *("ADLAM", "ARABIC", "HEBREW", "MANDAIC", "NKO", "SAMARITAN", "SYRIAC", "THAANA"),
    ),
}
# In place of them: code points that are not characters, so that no rule changes them.
_PLACES = {character: 0xFDD0 + n for n, character in enumerate("".join(_OF_SCRIPTS))}
_UNPROTECTED = {place: character for character, place in _PLACES.items()}


def normalize(text: str) -> str:
    r"""Normalizes a text by the rules of `nmt_nfc`. All spaces stay.

    Example:
        >>> normalize("cafe\u0301\u00a0na\u200bi\u0308f")
        'café naïf'
    """
    return _normalizer(folds_spaces=False, escapes_spaces=False).Normalize(clean(text))


def comparable(text: str) -> str:
    """Normalizes a text for comparisons: `normalize`, NFC, and single spaces between words."""
    return unicodedata.normalize("NFC", " ".join(normalize(text).split()))


def comparable_in_script(text: str) -> str:
    """Normalizes a text like `comparable`, but keeps format characters that its script needs."""
    if set(text).isdisjoint(_PLACES):
        return comparable(text)
    letters = set(text).difference(_PLACES)
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in letters}
    for characters, of_scripts in _OF_SCRIPTS.items():
        if not scripts.isdisjoint(of_scripts):
            text = text.translate({ord(x): _PLACES[x] for x in characters})
    return comparable(text).translate(_UNPROTECTED)


def is_blank(text: str) -> bool:
    """Whether all characters of a text are white space, control or format characters."""
    return all(unicodedata.category(character) in BLANK for character in text)


def has_letters(text: str) -> bool:
    """Whether the text has a letter of any script."""
    return any(unicodedata.category(character) in LETTERS for character in text)


@functools.cache
def class_of(categories: tuple[str, ...]) -> str:
    """Writes the characters of Unicode categories as the inside of a character class of RE2.

    Graphs use this class. The classes of RE2 follow another version of Unicode than Python.
    """
    parts, start = [], 0
    for inside, runs in itertools.groupby(_runs(), lambda run: run[0] in categories):
        stop = start + sum(length for _, length in runs)
        if inside:
            parts.append(rf"\x{{{start:X}}}-\x{{{stop - 1:X}}}")
        start = stop
    return "".join(parts)


def literal_class_of(categories: tuple[str, ...]) -> str:
    """`class_of` letters, marks and numbers, as both `re` and RE2 read it."""
    return re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), class_of(categories))


@functools.cache
def _runs() -> list[tuple[str, int]]:
    """The Unicode category of each run of characters with one category, and its length."""
    categories = map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))
    return [(category, sum(1 for _ in run)) for category, run in itertools.groupby(categories)]


def clean(text: str) -> str:
    """Makes a text valid for SentencePiece: well-formed, and without NUL."""
    return well_formed(text).replace("\0", "")


def well_formed(text: str) -> str:
    """Replaces every lone surrogate by U+FFFD, because UTF-8 cannot encode surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def with_rules(model: bytes, folds_spaces: bool) -> bytes:
    """Replaces the rules of a serialized SentencePiece model by `nmt_nfc`.

    If it folds spaces, it removes spaces at the ends of a line, and replaces several spaces by one.
    """
    # Protocol buffers are merged by concatenation. The last value of a field counts.
    rules = _normalizer(folds_spaces, escapes_spaces=True).serialized_model_proto()
    merged = sentencepiece.SentencePieceProcessor(model_proto=model + rules + _NAME)
    return merged.serialized_model_proto()


@functools.cache
def _normalizer(folds_spaces: bool, escapes_spaces: bool) -> sentencepiece.SentencePieceNormalizer:
    """Makes a normalizer with the rules, with or without SentencePiece's own rules for spaces."""
    sentencepiece.SetMinLogLevel(2)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rules.tsv"
        path.write_text("".join(map(_line, sorted(rules().items()))), "utf-8")
        return sentencepiece.SentencePieceNormalizer(
            rule_tsv=str(path),
            add_dummy_prefix=folds_spaces,
            escape_whitespaces=escapes_spaces,
            remove_extra_whitespaces=folds_spaces,
        )


def _line(rule: tuple[str, str]) -> str:
    """Writes a rule in SentencePiece's format: code points in hexadecimal."""
    return "\t".join(" ".join(f"{ord(x):X}" for x in text) for text in rule) + "\n"


def rules() -> dict[str, str]:
    """Makes the replacement of each sequence of characters. The longest match counts."""
    characters = list(map(chr, range(1, sys.maxunicode + 1)))
    composed: dict[str, list[str]] = {}  # characters by their decomposition
    for character in characters:
        if not unicodedata.is_normalized("NFD", character):
            composed.setdefault(unicodedata.normalize("NFD", character), []).append(character)
    table: dict[str, str] = {}
    for decomposed in composed:
        target = unicodedata.normalize("NFC", decomposed)
        table |= dict.fromkeys(_spellings(decomposed, composed) - {target}, target)
    for character in characters:
        if character.isspace():
            table[character] = " "
        elif unicodedata.category(character) in ("Cc", "Cf") and character not in _KEPT:
            table[character] = ""
    del table[" "]
    return table


def _spellings(decomposed: str, composed: dict[str, list[str]]) -> set[str]:
    """Makes all texts that are canonically equivalent to a decomposed character.

    The marks may stand in any order, and any part of a text may be composed already.
    """
    spellings = set()
    for order in itertools.permutations(decomposed[1:]):
        text = decomposed[0] + "".join(order)
        if unicodedata.normalize("NFD", text) != decomposed:
            continue
        prefixes = [{""}]  # spellings of the first characters
        for end in range(1, len(text) + 1):
            prefixes.append({before + text[end - 1] for before in prefixes[-1]})
            for start in range(end):
                same = composed.get(unicodedata.normalize("NFD", text[start:end]), [])
                pairs = itertools.product(prefixes[start], same)
                prefixes[end].update(map("".join, pairs))
        spellings |= prefixes[-1]
    return spellings
