"""`nmt_nfc`: equal letters, spaces and lines for a reader become equal text.

- Each white-space character becomes a space.
- Control and format characters are deleted, such as soft hyphens, zero-width spaces and byte-order
  marks. Format characters stay if they show or join something: joiners (U+200C, U+200D), the tags
  of flags, Arabic, Syriac and Kaithi number signs, the layout of hieroglyphs.
- A letter is composed with its combining marks as in Unicode's NFC, in any order of the marks
  that is canonically equivalent. Marks that no composed letter has stay as they are.

SentencePiece applies the rules and stores them in its model. So Python and the graph agree, and a
model keeps its rules under a Python with another version of Unicode.
"""

import functools
import itertools
import pathlib
import sys
import tempfile
import unicodedata
from typing import TYPE_CHECKING

import sentencepiece

if TYPE_CHECKING:
    import numpy as np

NMT_NFC = "nmt_nfc"
# A SentencePiece model whose normalizer has this name, and no path of a table.
_NAME = b"\x1a\x0b" + b"\n\x07nmt_nfc" + b"2\x00"
BLANK = ("Zs", "Zl", "Zp", "Cc", "Cf")  # Unicode's categories
LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo")
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
    return _normalizer(folds_spaces=False, escapes_spaces=False).Normalize(clean(text))


def comparable(text: str) -> str:
    """The form in which two texts are compared: `normalize`, NFC, and single spaces between words.

    Example:
        >>> comparable(" cafe\u0301\u00a0\u200b au  lait") == "caf\u00e9 au lait"
        True
    """
    return unicodedata.normalize("NFC", " ".join(normalize(text).split()))


def is_blank(text: str) -> bool:
    """Whether the text has white space, control and format characters alone."""
    return all(unicodedata.category(character) in BLANK for character in text)


def has_letters(text: str) -> bool:
    """Whether the text has a letter of any script."""
    return any(unicodedata.category(character) in LETTERS for character in text)


@functools.cache
def class_of(categories: tuple[str, ...]) -> str:
    """The characters of Unicode's categories, as the inside of a class of RE2.

    RE2 has classes of its own, by another version of Unicode. A graph takes this one.
    """
    import numpy as np  # --help does without

    inside = np.isin(_categories(), categories).astype(int)
    edges = np.flatnonzero(np.diff(inside, prepend=0, append=0)).tolist()
    return "".join(
        rf"\x{{{start:X}}}-\x{{{end - 1:X}}}"
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    )


@functools.cache
def _categories() -> "np.ndarray":
    """The category of each character."""
    import numpy as np

    names = "".join(map(unicodedata.category, map(chr, range(sys.maxunicode + 1))))
    return np.frombuffer(names.encode("utf-32-le"), "<U2")


def clean(text: str) -> str:
    """The text as SentencePiece takes it: well-formed, and without NUL, which needs no rule."""
    return well_formed(text).replace("\0", "")


def well_formed(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def with_rules(model: bytes, folds_spaces: bool) -> bytes:
    """A SentencePiece model with the rules of `nmt_nfc` in place of its own.

    Args:
        model: the serialised model.
        folds_spaces: whether it removes spaces at the ends of a line and all but one of a run.
    """
    # Messages of a protocol buffer are merged by concatenation: the last value of a field counts.
    rules = _normalizer(folds_spaces, escapes_spaces=True).serialized_model_proto()
    merged = model + rules + _NAME
    processor = sentencepiece.SentencePieceProcessor(model_proto=merged)
    return processor.serialized_model_proto()


@functools.cache
def _normalizer(folds_spaces: bool, escapes_spaces: bool) -> sentencepiece.SentencePieceNormalizer:
    """The rules, with SentencePiece's treatment of spaces or without."""
    sentencepiece.SetMinLogLevel(2)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rules.tsv"
        path.write_text("".join(_line(*rule) for rule in sorted(rules().items())), "utf-8")
        return sentencepiece.SentencePieceNormalizer(
            rule_tsv=str(path),
            add_dummy_prefix=folds_spaces,
            escape_whitespaces=escapes_spaces,
            remove_extra_whitespaces=folds_spaces,
        )


def _line(before: str, after: str) -> str:
    """A rule in SentencePiece's form: code points in hexadecimal."""
    columns = (" ".join(f"{ord(character):X}" for character in text) for text in (before, after))
    return "\t".join(columns) + "\n"


def rules() -> dict[str, str]:
    """What each sequence of characters becomes; SentencePiece replaces the longest one first."""
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
    """The texts that are canonically equivalent to a decomposed character.

    They have its marks in any order, and any part of them may be composed already.
    """
    spellings = set()
    for order in itertools.permutations(decomposed[1:]):
        text = decomposed[0] + "".join(order)
        if unicodedata.normalize("NFD", text) != decomposed:
            continue
        prefixes = [{""}]  # spellings of the first characters
        for end in range(1, len(text) + 1):
            ends = {start: _characters(text[start:end], composed) for start in range(end)}
            pairs = (itertools.product(prefixes[start], ends[start]) for start in range(end))
            prefixes.append(set(map("".join, itertools.chain.from_iterable(pairs))))
        spellings |= prefixes[-1]
    return spellings


def _characters(text: str, composed: dict[str, list[str]]) -> list[str]:
    """The characters that are canonically equivalent to a text."""
    same = composed.get(unicodedata.normalize("NFD", text), [])
    return [text, *same] if len(text) == 1 else same
