"""`nmt_nfc`: equal letters, spaces and lines for a reader become equal text.

- Each white-space character becomes a space.
- Control and format characters are deleted, such as soft hyphens, zero-width spaces and byte-order
  marks. Format characters stay if they show or join something: joiners (U+200C, U+200D), the tags
  of flags, Arabic, Syriac and Kaithi number signs, the layout of hieroglyphs.
- A letter is composed with its combining marks as in Unicode's NFC, in any order of the marks
  that is canonically equivalent.

SentencePiece applies the rules and stores them in its model. So Python and the graph agree, and a
model keeps its rules under a Python with another version of Unicode.
"""

import functools
import itertools
import pathlib
import sys
import tempfile
import unicodedata

import sentencepiece

NMT_NFC = "nmt_nfc"
_KEPT = frozenset(
    map(
        chr,
        itertools.chain(
            *(range(0x600, 0x606), [0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x200C, 0x200D]),
            *([0x110BD, 0x110CD], range(0x13430, 0x13440), range(0xE0020, 0xE0080)),
        ),
    )
)


def normalize(text: str) -> str:
    r"""The text by the rules of `nmt_nfc`; runs of spaces and spaces at the ends stay.

    Example:
        >>> normalize("cafe\u0301\u00a0na\u200bi\u0308f")
        'café naïf'
    """
    return _normalizer().Normalize(well_formed(text))


def well_formed(text: str) -> str:
    """The text without NUL, with U+FFFD for every lone surrogate, which UTF-8 cannot encode.

    A rule table of SentencePiece cannot have a rule for NUL.
    """
    text = text.replace("\0", "")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@functools.cache
def normalizer_model() -> bytes:
    """A SentencePiece model that has the rules and nothing else."""
    sentencepiece.SetMinLogLevel(2)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rules.tsv"
        path.write_text("".join(map(_line, *zip(*sorted(rules().items()), strict=True))))
        return _without_folding(rule_tsv=str(path)).serialized_model_proto()


@functools.cache
def _normalizer() -> sentencepiece.SentencePieceNormalizer:
    return _without_folding(model_proto=normalizer_model())


def _without_folding(**source) -> sentencepiece.SentencePieceNormalizer:
    return sentencepiece.SentencePieceNormalizer(
        **source, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )


def _line(before: str, after: str) -> str:
    """A rule in SentencePiece's form: code points in hexadecimal."""
    columns = (" ".join(f"{ord(character):X}" for character in text) for text in (before, after))
    return "\t".join(columns) + "\n"


def rules() -> dict[str, str]:
    """What each sequence of characters becomes; SentencePiece replaces the longest one first."""
    characters = list(map(chr, range(1, sys.maxunicode + 1)))
    variants: dict[str, list[str]] = {}  # by their normal form
    for character in characters:
        composed = unicodedata.normalize("NFC", character)
        if composed != character:
            variants.setdefault(composed, []).append(character)
    table = {}
    for character in characters:
        if character.isspace():
            table[character] = " "
        elif unicodedata.category(character) in ("Cc", "Cf") and character not in _KEPT:
            table[character] = ""
        elif not unicodedata.is_normalized("NFD", character):
            composed = unicodedata.normalize("NFC", character)
            table |= dict.fromkeys(_equivalent(character, variants) - {composed}, composed)
    del table[" "]
    return table


def _equivalent(character: str, variants: dict[str, list[str]]) -> set[str]:
    """The texts that are canonically equivalent to a character, in forms that keyboards make.

    They have its marks in any order, and the first of them may be composed already.
    """
    composed = unicodedata.normalize("NFC", character)
    first, *marks = unicodedata.normalize("NFD", character)
    equivalent = {character}
    for order in itertools.permutations(marks):
        if unicodedata.normalize("NFC", "".join([first, *order])) != composed:
            continue
        forms, text = {first, *variants.get(first, [])}, first
        for mark in order:
            forms = {form + mark for form in forms}
            text = unicodedata.normalize("NFC", text + mark)
            forms |= {text, *variants.get(text, [])}
        equivalent |= forms
    return equivalent


def comparable(text: str) -> str:
    """The form in which two texts are compared: `normalize`, NFC, and single spaces between words.

    Example:
        >>> comparable(" cafe\u0301\u00a0\u200b au  lait") == "caf\u00e9 au lait"
        True
    """
    return unicodedata.normalize("NFC", " ".join(normalize(text).split()))
