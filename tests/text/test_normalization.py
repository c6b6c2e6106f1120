"""The rules of nmt_nfc, over all of Unicode, against unicodedata."""

import hashlib
import itertools
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.text.normalization import comparable, comparable_in_script, normalize, rules

SEPARATOR = "\uf8ff"
CODES = {*range(1, sys.maxunicode + 1)} - {*range(0xD800, 0xE000), ord(SEPARATOR)}
CHARACTERS = list(map(chr, sorted(CODES)))
SEEN = "\u200c\u200d\u0600\u06dd\u070f\U000e0067"  # format characters that join or show something


def expected(character: str) -> str:
    if character.isspace():
        return " "
    if unicodedata.category(character) in ("Cc", "Cf"):
        return character if normalize(character) == character else ""
    return unicodedata.normalize("NFC", character)


def of_each(texts: list[str]) -> list[str]:
    """`normalize` of each text, by one call."""
    return normalize(SEPARATOR.join(texts)).split(SEPARATOR)


def test_each_character_in_each_of_its_forms():
    wanted = list(map(expected, CHARACTERS))
    assert of_each(CHARACTERS) == wanted
    for form in ("NFC", "NFD"):
        assert of_each([unicodedata.normalize(form, c) for c in CHARACTERS]) == wanted


def test_marks_in_any_order_that_is_canonically_equivalent():
    for letter in CHARACTERS:
        first, *marks = unicodedata.normalize("NFD", letter)
        composed = unicodedata.normalize("NFC", letter)
        for order in itertools.permutations(marks) if len(marks) > 1 else ():
            form = first + "".join(order)
            if unicodedata.normalize("NFC", form) == composed:
                partly = unicodedata.normalize("NFC", form[:-1]) + form[-1]
                assert of_each([form, partly]) == [composed, composed]


def test_every_rule_is_that_of_unicode():
    for before, after in rules().items():
        assert after in (" ", "") or after == unicodedata.normalize("NFC", before)


def test_format_characters_that_a_reader_sees_stay():
    assert normalize(SEEN) == SEEN


def test_invisible_characters_are_deleted():
    invisible = "\u00ad\u200b\u200e\u200f\u202a\u202e\u2060\u2066\ufeff\x00\x01\x7f\U000e0001"
    assert normalize(invisible) == ""


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Vie\u0323\u0302t", "Việt"),
        ("Vi\u00ea\u0323t", "Việt"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
        ("\uac00\u11a8", "각"),
        ("a\u00a0\tb\r", "a  b "),
        ("½ ﬁ ① Ⅷ", "½ ﬁ ① Ⅷ"),  # compatibility characters look different
        ("\ud83d", "\ufffd"),
    ],
)
def test_examples(text, normalized):
    assert normalize(text) == normalized


def test_the_rules_are_the_same_under_every_python():
    """Versions of Unicode differ in characters that no rule names."""
    table = "".join(f"{before}\t{after}\n" for before, after in sorted(rules().items()))
    digest = hashlib.sha256(table.encode("utf-8")).hexdigest()
    assert digest == "3425bd5a908ffe433eba97d21daa675cd5373d8391880805dd885b1c5b2dfbb8"


@pytest.mark.parametrize(
    "script", ["\u1780\u17b6", "\u0e81", "\u1000", "\u0e01", "\u0627", "\u05d0"]
)
def test_scores_keep_the_format_characters_that_a_script_needs(script):
    needed = "\u061c\u200e\u200f" if script in "\u0627\u05d0" else "\u200b\u2060"
    others = set("\u00ad\ufeff\u200b\u2060\u061c\u200e\u200f") - set(needed)
    for character in needed:
        text = f"{script}{character}  {script}"
        assert comparable_in_script(text) == f"{script}{character} {script}"
        assert comparable_in_script(comparable_in_script(text)) == comparable_in_script(text)
        assert comparable_in_script(f"a{character}b") == "ab"  # no letter of the script
    for character in others:
        assert comparable_in_script(f"{script}{character} {script}") == f"{script} {script}"


@given(st.text())
def test_texts_without_these_characters_are_comparable_alike(text):
    plain = text.translate(dict.fromkeys(map(ord, "\u200b\u2060\u061c\u200e\u200f")))
    assert comparable_in_script(plain) == comparable(plain)
