"""Faults of translations, and texts that have none."""

import functools

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.text.test_placeholders import LOST, USUAL
from tf_transformer.text import faults

# Those that only a rule with lookaround can tell from other text.
WITH_LOOKAROUND = {"%L1", "%1km", "%1%", "{0:dd MMM}", "{0, list}"}

LOOPS = [
    ("a small house", "ein kleines Haus, ein kleines Haus"),
    ("the funding", "die Förderung der Förderung der Förderung der"),
    ("yes", "ja ja ja"),
    ("a house", "hahahahahahaha Haus"),
    ("一つの家", "家" * 12),
    ("one one two", "eins eins eins zwei"),
]
NO_LOOPS = [
    ("From time to time.", "Von Zeit zu Zeit zu Hause."),
    ("no, no, no", "nein, nein, nein"),
    ("the one that", "die, die das"),
    ("wow!!!!!!!!", "wow!!!!!!!!"),
    ("", ""),
    ("in the park in the city in the land", "im Park in der Stadt in dem Land in der Ferne"),
]


@functools.cache
def graph_of(rule, *arguments):
    """A rule for texts and their translations, traced once."""
    return tf.function(
        lambda *sides: rule(faults.Pairs.of(*sides), *arguments),
        input_signature=[tf.TensorSpec((None,), tf.string)] * 2,
        autograph=False,
    )


def found_by(rule, texts, translations, *arguments):
    return graph_of(rule, *map(tuple, arguments))(tf.constant(texts), tf.constant(translations))


def holds(rule, source, translation, *arguments):
    """A rule for one text, with others beside it."""
    sides = ["", source, "c"], ["a b a b a b", translation, ""]
    return found_by(rule, *sides, *arguments).numpy().tolist()[1]


@pytest.mark.parametrize(("source", "translation"), LOOPS)
def test_a_loop_is_found(source, translation):
    assert holds(faults.has_loop, source, translation)


@pytest.mark.parametrize(("source", "translation"), NO_LOOPS)
def test_usual_repetitions_are_no_loops(source, translation):
    assert not holds(faults.has_loop, source, translation)


@given(st.lists(st.sampled_from("abcde"), min_size=3, max_size=12), st.integers(2, 5))
def test_a_text_that_is_repeated_is_a_loop_unless_its_source_is_one(words, times):
    text = " ".join(words * times)
    assert holds(faults.has_loop, "a house", text)
    assert not holds(faults.has_loop, text, text)


@pytest.mark.parametrize(
    ("source", "translation", "is_copy"),
    [
        ("Where is it?", "where is it", True),
        ("Where is the old station now?", "Where is the old Bahnhof now?", True),
        ("Tom Smith!", "Tom Smith!", False),
        ("17 18 19 20", "17 18 19 20", False),
        ("https://a.b/c/d?e=f", "https://a.b/c/d?e=f", False),
        ("Tom is in Boston.", "Tom ist in Boston.", False),
        ("", "", False),
    ],
)
def test_a_copy_has_most_words_of_its_text(source, translation, is_copy):
    assert holds(faults.is_copy, source, translation) == is_copy


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,250.50 or 1.250,50", ["125050", "125050"]),
        ("1 250", ["250"]),
        ("1\u202f250", ["1250"]),
        ("at 15:30, in 2.00 hours, for 100.00", ["1530", "100"]),
        ("A4.50 12.00 B12,13 013", ["13"]),
        ("$100 #19 A40 %1$s {15} &#160; twelve 12 012", ["100", "19"]),
        ("٣٤ of 34", ["34", "34"]),
        ("9" * 5000, ["9" * 5000]),
        ("", []),
    ],
)
def test_numbers_are_their_digits(text, found):
    read = faults.numbers(tf.constant(["17", text, ""])).to_list()
    assert [x.decode() for x in read[1]] == found


CHANGED = {code: other for code, other in LOST.items() if code not in WITH_LOOKAROUND}


@pytest.mark.parametrize("code", CHANGED)
def test_a_lost_or_changed_placeholder_is_found(code):
    text = f"Das ist {code} ja."
    assert not holds(faults.has_other_placeholders, text, f"Ja, {code} ist das.")
    assert holds(faults.has_other_placeholders, text, f"Das ist {CHANGED[code]} ja.")
    assert holds(faults.has_other_placeholders, "Das ist ja.", text)


@pytest.mark.parametrize("text", USUAL)
def test_usual_text_has_no_placeholders(text):
    assert not holds(faults.has_other_placeholders, text, "Das ist ja.")


@pytest.mark.parametrize(
    ("source", "translation", "differ"),
    [
        ("%1$s of %2$s", "%2$s mit %1$s", False),
        ("%s of %s", "%s", True),
        ("&File (&F)", "&Datei (&D)", False),
        ("<b>A</b>", "<b> A </b>", False),
        ("%dx%d, %ds", "%d x %d, %d Sek.", False),
        ("{n, plural, one {# file}}", "{n, plural, one {# Datei}}", False),
        ("{n, plural, one {# file}}", "{m, plural, one {# file}}", True),
        ("%s sent %d files.", "%sさんが%d個のファイルを送りました。", False),
        ("", "", False),
    ],
)
def test_placeholders_may_stand_in_any_order(source, translation, differ):
    assert holds(faults.has_other_placeholders, source, translation) == differ


@pytest.mark.parametrize(
    ("source", "translation", "is_foreign"),
    [
        ("a small house", "ein маленький Haus", True),
        ("a house", "ein 房子 Haus mit Garten", True),
        ("ein Haus", "маленький дом σπίτι", True),
        ("Иван slept", "Иван schlief", False),
        ("Tom has a DVD", "トムはDVDを持っている", False),
        ("a house", "маленький дом", False),
        ("10 µm at 5 Ω", "10 µm bei 5 Ω", False),
        ("a house", "ein größeres Häuschen", False),
    ],
)
def test_a_word_in_another_script_is_found(source, translation, is_foreign):
    assert holds(faults.has_wrong_script, source, translation) == is_foreign


def test_a_whole_text_in_another_script_is_wrong_if_the_script_of_the_target_is_known():
    german, japanese = map(faults.scripts_of, (["ein Haus"] * 999 + ["д"], ["家", "house 一つ"]))
    assert holds(faults.has_wrong_script, "a house", "маленький дом", german)
    assert not holds(faults.has_wrong_script, "a house", "一つの家", japanese)
    assert not holds(faults.has_wrong_script, "a house", "a house", japanese)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_texts_can_be_compared(source, translation):
    source, translation = (x.replace("\0", "") for x in (source, translation))
    for rule in (faults.has_loop, faults.is_copy, faults.has_wrong_script):
        assert found_by(rule, [source], [translation]).shape == (1,)
    for rule in (faults.has_loop, faults.has_wrong_script, faults.has_other_numbers):
        assert not found_by(rule, [source], [source])[0]
