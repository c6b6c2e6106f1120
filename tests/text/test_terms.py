"""Terms are read and found alike in Python and on tensors."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from reference_terms import find_terms

from tf_transformer.errors import InputError
from tf_transformer.text import graph_terms
from tf_transformer.text.terms import Term, may_apply, parse_terms

WORDS = st.sampled_from(
    [
        "a",
        "A",
        "the",
        "The",
        "car",
        "Car",
        "cars",
        "park",
        "É",
        "été",
        "5",
        "Mr.",
        "駅",
        "前",
        "x_y",
    ]
) | st.sampled_from(".,'-!?\n\t()😀\u0301\x01")
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
TEXTS = st.lists(WORDS | st.sampled_from([" ", "  "]), max_size=12)
GLOSSARIES = st.lists(
    st.tuples(PHRASES, st.sampled_from(["x", " y", "z z"])).map("\t".join)
    | st.sampled_from(["", "a", "a\t", "\tb", "a\tb\tc", " \t b", "a\tb\r"]),
    max_size=6,
).map("\n".join)


def in_python(text: str, glossary: str, language: str) -> list[tuple]:
    """The matches with places in bytes; wrong lines are ignored, as on tensors."""
    terms = []
    for line in glossary.split("\n"):
        try:
            terms += parse_terms(line)
        except InputError:
            continue
    matches = find_terms(text, terms, language)
    sizes = [tuple(len(text[:place].encode()) for place in match[:2]) for match in matches]
    return [(*size, match.target) for size, match in zip(sizes, matches, strict=True)]


@given(
    st.lists(st.tuples(TEXTS.map("".join) | TEXTS.map(" ".join), GLOSSARIES), max_size=4),
    st.sampled_from(["en", ""]),
)
def test_the_graph_finds_the_same_terms(pairs, language):
    texts, glossaries = ([row[n] for row in pairs] for n in (0, 1))
    terms = graph_terms.parse_terms(tf.constant(glossaries, tf.string))
    found = graph_terms.find_terms(tf.constant(texts, tf.string), terms, language)
    rows = [[] for _ in pairs]
    for row, start, stop, target in zip(*(field.numpy() for field in found), strict=True):
        rows[row].append((start, stop, target.decode()))
    assert rows == [in_python(*pair, language) for pair in pairs]


@given(TEXTS.map(" ".join), st.lists(st.tuples(PHRASES, st.just("x")), max_size=6))
def test_terms_whose_words_do_not_occur_make_no_difference(text, terms):
    terms = [Term(" ".join(source.split()) or "a", target) for source, target in terms]
    glossary = "\n".join(map("\t".join, terms))
    for case in (text, text.lower()):
        assert find_terms(case, parse_terms(may_apply(text, glossary))) == find_terms(case, terms)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("a car park and a car", ["Parkplatz", "Auto"]),
        ("cars, carpark, car-park, scar", ["Auto"]),
        ("the Car", []),
        ("The car stops. Car park full.", ["Auto", "Parkplatz"]),
        ("Mr. Car left.", []),
        ("(Car)", ["Auto"]),
        ("car\npark", ["Auto"]),
        ("car  park", ["Parkplatz"]),
        ("NATO, nato", ["OTAN"]),
        ("", []),
    ],
)
def test_whole_words_in_one_sentence(text, targets):
    terms = parse_terms("car\tAuto\ncar park\tParkplatz\nNATO\tOTAN\n\ncar\tWagen")
    assert [match.target for match in find_terms(text, terms, "en")] == targets


@pytest.mark.parametrize("line", ["a", "a\t", "\tb", "a\tb\tc", "a = b"])
def test_a_line_without_a_term_is_an_error_with_its_number(line):
    with pytest.raises(InputError, match="line 3 of the terms must be a phrase, one tab"):
        parse_terms(f"x\ty\n\n{line}\n")
