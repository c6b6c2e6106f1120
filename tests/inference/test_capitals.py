"""Text in capitals or in title case: the model sees a usual sentence; a short word is copied."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import DecodeConfig
from tf_transformer.inference import capitals_graph
from tf_transformer.inference.translator import Translator
from tf_transformer.text import capitals

CAPITALS = ["TWENTY-ONE", "SEVEN, 8 OR ÉTÉ!", "OK!", "STRASSE", "A BIG OLD DOG", "IT IS RAINING."]
TITLES = ["Two Or Three (Or 4) Dogs", "“It’s” On 5th Street, NATO", "Seventy-two  Hundred\tAnd One"]
OTHERS = ["Twenty-one", "I 5", "17", "", "NATO and UN", "日本 AI", "STRAßE", "Martin Luther King"]
SHORT = ["IT", "WHO", "US", "AM", "OK", " UN\t", "ÉTÉ", "США"]
LONGER = ["IT?", "(US)", "NATO", "IT SUPPORT", "UN 2"]  # read as sentences
MORE_OTHERS = ["Two Or Three Or four", "Two Or Three 日本 One"]
TEXTS = [*CAPITALS, *TITLES, *OTHERS, *MORE_OTHERS]
FORMS = [str.upper] * len(CAPITALS) + [capitals.title] * len(TITLES)
# Letters of Unicode 14. TensorFlow does not know their capitals.
LATE = [0x2C2F, 0x2C5F, 0xA7C0, 0xA7C1, 0xA7D0, *range(0xA7D1, 0xA7DA), *range(0x10570, 0x105BD)]
CHARACTERS = st.characters(
    categories=["Lu", "Ll", "Lo", "Lm", "Lt", "Nd", "Zs", "Cc", "Po", "Mn"],
    exclude_characters="".join(map(chr, LATE)),
)
WORDS = st.text("AÉСΣ", min_size=1, max_size=5)
TITLED = st.lists(st.sampled_from(["A", "Bé", "ÉT", "(Ob", "7", "...", "7a", "ö"]), max_size=7)


@pytest.fixture(scope="module")
def plain(run):
    translator = Translator.from_run(run)
    decode = DecodeConfig(beam_size=3, num_hypotheses=3, max_length=6)
    return Translator(translator.model, translator.codec, decode)


@pytest.fixture(scope="module")
def lowering(plain):
    return Translator(plain.model, plain.codec, plain.config, lower_capitals=True)


@pytest.mark.parametrize("text", TEXTS)
def test_the_case_of_a_text_is_that_of_all_its_words(text):
    assert capitals.form_of(text) == dict(zip(TEXTS, FORMS, strict=False)).get(text)


@given(
    st.lists(
        st.text(CHARACTERS) | WORDS | st.text("AÉΣ 5!", max_size=4) | TITLED.map(" ".join),
        min_size=1,
        max_size=5,
    )
)
def test_the_graph_finds_and_makes_the_same_cases(texts):
    texts = [text.replace("\0", "") for text in texts]  # as `clean` does
    forms = [capitals.form_of(text) for text in texts]
    upper, in_title = (mask.numpy().tolist() for mask in capitals_graph.cases(tf.constant(texts)))
    assert upper == [form is str.upper for form in forms]
    assert in_title == [form is capitals.title for form in forms]
    short = capitals_graph.is_short_word(tf.constant(texts)).numpy().tolist()
    assert short == list(map(capitals.is_short_word, texts))
    for name in ("title", "sentence"):
        made = getattr(capitals_graph, name)(tf.constant(texts)).numpy()
        assert [each.decode() for each in made] == [getattr(capitals, name)(x) for x in texts]


@given(WORDS, st.sampled_from(["", " ", "\t"]), st.sampled_from(["", " ", "!", "?", " A", "a"]))
def test_a_word_of_two_or_three_capitals_is_short(word, before, after):
    is_short = 2 <= len(word) <= 3 and not after.strip()
    assert capitals.is_short_word(before + word + after) == is_short
    assert (capitals.form_of(before + word + after) is None) == (
        is_short or after == "a" or (len(word) == 1)
    )


@pytest.mark.slow
def test_a_short_word_is_its_own_translation(lowering, plain):
    """With score 0, as in the graph; a prefix and a longer text are translated."""
    found = lowering.n_best(SHORT)
    assert [[x[:2] for x in row] for row in found] == [[(text, 0.0)] for text in SHORT]
    assert not {row[0].text for row in plain.n_best(SHORT)} & set(SHORT)
    outputs = lowering.graph(jit_compile=False).predict(tf.constant(SHORT))
    assert [text.decode() for text in outputs["translation"].numpy()] == SHORT
    assert outputs["score"].numpy().tolist() == [0] * len(SHORT)
    usual = plain(list(map(capitals.sentence, LONGER)))
    assert [each.text for each in lowering(LONGER)] == [each.text.upper() for each in usual]
    assert lowering(["IT"], ["ein"])[0].text.startswith("ein")


def test_a_text_with_capitals_is_translated_as_a_sentence(plain, lowering):
    forms = FORMS + [None] * (len(TEXTS) - len(FORMS))
    usual = [capitals.sentence(x) if form else x for x, form in zip(TEXTS, forms, strict=True)]
    expected, found = plain.n_best(usual), lowering.n_best(TEXTS)
    for row, same, form in zip(found, expected, forms, strict=True):
        assert row[0].text == (form or str)(same[0].text)
        assert row[0].score == pytest.approx(same[0].score, abs=1e-4)
    outputs = lowering._graph.predict(tf.constant(TEXTS))
    assert [text.decode() for text in outputs["translation"].numpy()] == [r[0].text for r in found]


def test_prefixes_scores_and_alignments_are_those_of_the_sentence(plain, lowering):
    sources = ["TWENTY-ONE", "TWO!", "Two Or Three Or Four"]
    targets = ["EINUND", "ZWEI", "Zwei Oder"]
    usual = [list(map(capitals.sentence, texts)) for texts in (sources, targets)]
    found, expected = lowering(sources, targets), plain(*usual)
    texts = [each.text for each in found]
    forms = [str.upper, str.upper, capitals.title]
    assert texts == [form(each.text) for form, each in zip(forms, expected, strict=True)]
    assert all(map(str.startswith, texts, targets))
    scores = ([each.score for each in rows] for rows in (found, expected))
    np.testing.assert_allclose(*scores, atol=1e-4)
    np.testing.assert_allclose(
        [each.score for each in lowering.score(sources, targets)],
        [each.score for each in plain.score(*usual)],
        atol=1e-5,
    )
    alignments = lowering.align(sources, targets), plain.align(*usual)
    for alignment, of_usual in zip(*alignments, strict=True):
        assert alignment.source == of_usual.source
        np.testing.assert_allclose(alignment.weights, of_usual.weights, atol=1e-6)
