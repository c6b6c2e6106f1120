"""The changes of a pair of texts: both sides change alike, mistakes are in the source only."""

import re
from collections import Counter

import numpy as np
import pytest

from tf_transformer.data.augmentation import copies, noise, typography
from tf_transformer.data.augmentation.name_lists import NAMES, NAMES_WITHOUT_ACCENTS
from tf_transformer.data.augmentation.spans import SPANS, draw, is_held_out
from tf_transformer.data.augmentation.text_augmentation import changes

PAIR = ('Tom\'s dog, 42 cats - and "Mary" left.', 'Toms Hund, 42 Katzen - und "Mary" gingen.')
PAIRS = [
    PAIR,
    ("I saw Tom yesterday.", "Ich habe Tom gestern gesehen."),
    ("Go! Now!", "Geh! Jetzt!"),
    ("No end mark", "Kein Satzzeichen"),
    ("?", "?"),
    ("日本語です。", "Das ist Japanisch."),
]
DRAWS = 60
USUAL = {*NAMES, *NAMES_WITHOUT_ACCENTS}


def test_names_are_words():
    assert min(map(len, USUAL)) > 1


def results(change, pair):
    return {change(pair, np.random.default_rng(seed)) for seed in range(DRAWS)}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", changes())
def test_a_change_is_a_function_of_pair_and_generator_and_leaves_text(name, pair):
    change = changes()[name]
    for seed in range(DRAWS):
        source, target = change(pair, np.random.default_rng(seed))
        assert (source, target) == change(pair, np.random.default_rng(seed))
        assert source.strip()
        assert target.strip()
        assert "\n" not in source + target


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (typography.upper, ("IT ISN'T BIG.", "ES IST NICHT GROSS.")),
        (typography.lower, ("it isn't big.", "es ist nicht groß.")),
        (typography.title, ("It Isn't Big.", "Es Ist Nicht Groß.")),
        (typography.without_end_mark, ("It isn't big", "Es ist nicht groß")),
    ],
)
def test_letters_and_marks_of_both_sides(change, expected):
    assert results(change, ("It isn't big.", "Es ist nicht groß.")) == {expected}


@pytest.mark.parametrize(
    "pair", [("Dog", "Hund"), ("A red dog", "Rothund"), ("Welcome", "Bitte sehr !")]
)
def test_the_translation_of_one_or_two_words_keeps_its_case(pair):
    """A word without its sentence is in lower case in English, and in German only if no noun."""
    assert results(typography.lower, pair) == {(pair[0].lower(), pair[1])}


@pytest.mark.parametrize("pair", [("Yes.", "Ja"), ("Yes", "Ja."), ("...", ".")])
def test_an_end_mark_of_one_side_stays(pair):
    assert results(typography.without_end_mark, pair) == {pair}


def test_marks_become_typographic_by_the_rules_of_each_language():
    change = typography.typography_of("en", "de")
    texts = results(change, ("'It's \"hot\"...", 'Es ist "heiß"...'))
    assert ("‘It’s “hot”…", "Es ist „heiß“…") in texts
    for source, target in texts:
        assert not re.search("[\"']|\\.\\.\\.", source + target)
    dashes = results(change, ("He left - at last.", "Er ging - endlich."))
    assert ("He left — at last.", "Er ging — endlich.") in dashes
    for source, target in dashes:
        assert re.findall("[–—]", source) == re.findall("[–—]", target)
    unknown = results(typography.typography_of(None, "xx"), ('"a" b', '"c" d'))
    assert ("“a” b", "“c” d") in unknown


def test_marks_are_added_to_both_sides_of_a_pair_without_any():
    texts = results(typography.typography_of("en", "de"), ("Well, Tom left.", "Nun, Tom ging."))
    assert {
        ("“Well, Tom left.”", "„Nun, Tom ging.“"),
        ("– Well, Tom left.", "– Nun, Tom ging."),
        ("Well — Tom left.", "Nun — Tom ging."),
    } <= texts
    assert PAIR not in texts


@pytest.mark.parametrize("change", [noise.typos, noise.spaces])
def test_mistakes_are_in_the_source_only(change):
    texts = results(change, PAIRS[1])
    assert {target for _, target in texts} == {PAIRS[1][1]}
    assert len(texts) > 3
    assert PAIRS[1] not in texts


def test_typos_are_in_long_words_only_and_keep_first_letters():
    for source, _ in results(noise.typos, ("Big 1234567 tomorrow isn't x@y.z", "")):
        assert re.fullmatch(r"Big 1234567 t\w{5,9} isn't x@y.z", source)
    assert results(noise.typos, ("It is so.", "")) == {("It is so.", "")}


def test_stray_spaces_change_only_spaces():
    for source, _ in results(noise.spaces, ("Yes, he said. No!", "")):
        assert source.replace(" ", "") == "Yes,hesaid.No!"
    assert ("Yes , he said. No!", "") in results(noise.spaces, ("Yes, he said. No!", ""))


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("kind", [*SPANS, "element"])
def test_a_copied_span_is_once_on_both_sides_beside_the_old_text(kind, held_out):
    places = set()
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        pair, spans = copies.copied(PAIRS[1], kind, rng, held_out)
        for text, before in zip(pair, PAIRS[1], strict=True):
            for span in spans:
                assert text.count(span) >= 1
                text = text.replace(span, "", 1)
            without_name = before.replace("Tom ", "")
            assert " ".join(text.split()).replace(" .", ".") in (before, without_name)
        places.add(tuple(round(text.index(spans[0]) / len(text), 1) for text in pair))
    assert len(places) >= (2 if kind == "element" else 4)


def test_a_span_stands_before_the_end_mark_of_both_sides_or_of_none():
    for seed in range(DRAWS):
        pair, (span,) = copies.copied(PAIRS[2], "code", np.random.default_rng(seed))
        assert pair[0].endswith(f"{span}!") == pair[1].endswith(f"{span}!")
        between = [f"! {span} " in text for text in pair]
        assert between[0] == between[1]


def test_a_number_takes_the_place_of_a_number_that_both_sides_have():
    for seed in range(DRAWS):
        pair, (span,) = copies.copied(PAIR, "number", np.random.default_rng(seed))
        assert pair == tuple(text.replace("42", span) for text in PAIR)


def test_names_are_replaced_wherever_they_stand():
    pair = ("Anna and Tom saw Anna.", "Anna und Tom sahen Anna.")
    for seed in range(DRAWS):
        (source, target), (name,) = copies.renamed(pair, np.random.default_rng(seed))
        assert (source, target) in (
            (f"{name} and Tom saw {name}.", f"{name} und Tom sahen {name}."),
            (f"Anna and {name} saw Anna.", f"Anna und {name} sahen Anna."),
        )


def test_most_names_of_a_training_occur_once():
    """A model learns names that it often sees by heart, and does not learn to copy others."""
    rng = np.random.default_rng(1)
    names = Counter(name for _ in range(300) for name in copies.renamed(PAIRS[1], rng)[1])
    assert sum(names.values()) == 300
    assert sum(count == 1 for count in names.values()) > 200


def test_a_training_has_many_names_that_look_usual_and_are_in_no_list():
    """A model that sees the names of a list alone translates the start of others: "Hannover"."""
    rng = np.random.default_rng(1)
    names = {name for _ in range(300) for name in copies.renamed(PAIRS[1], rng)[1]}
    starts, ends = ({name[:2] for name in USUAL}, {name[-2:] for name in USUAL})
    usual = {name for name in names if name[:2] in starts and name[-2:] in ends}
    assert len(usual - USUAL) > 60


def test_a_training_has_names_that_begin_like_a_word_of_the_source():
    """A model that translates such a start writes "Time" for the city "Malmö" ("mal": time)."""
    pair = ("Tom war schon zweimal hier.", "Tom has been here twice.")
    names = [copies.renamed(pair, np.random.default_rng(seed))[1][0] for seed in range(300)]
    like = [name for name in names if re.match(r"(War|Sch|Zwei|Hier)\w", name)]
    assert len(set(like)) > 20
    assert not any(map(is_held_out, names))


@pytest.mark.parametrize(
    "pair",
    [
        ("It was Tom's.", "Es war Toms."),  # an inflected name
        ("Tom saw Tom.", "Tom sah sich."),  # not as often
        ("What Was That", "Was War Das"),  # capitals do not show a name
        ("THE WAR", "DER WAR"),
        ("he knows tom", "er kennt tom"),
    ],
)
def test_words_that_may_be_no_names_stay(pair):
    assert results(copies.names, pair) == {pair}


@pytest.mark.parametrize("kind", SPANS)
def test_spans_are_drawn_from_two_disjoint_sets(kind):
    rng = np.random.default_rng(1)
    drawn, held_out = ({draw(kind, rng, x) for _ in range(300)} for x in (False, True))
    assert len(drawn) > 20
    assert all(span.strip() == span and span for span in drawn | held_out)
    if "tag" not in kind:
        assert not any(map(is_held_out, drawn))
        assert all(map(is_held_out, held_out))
