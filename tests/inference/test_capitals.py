"""Text in capitals: the model sees it in lower case, and its translation is in capitals."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import DecodeConfig
from tf_transformer.export import run_in_ctranslate2
from tf_transformer.inference.translator import Translator
from tf_transformer.text import graph_tokenizer, normalization

CAPITALS = ["TWENTY-ONE", "SEVEN, 8 OR ÉTÉ!", "OK", "STRASSE"]
OTHERS = ["Twenty-one", "I 5", "17", "", "NATO and UN", "日本 AI", "STRAßE"]
LETTERS = st.text(st.characters(categories=["Lu", "Ll", "Lo", "Lm", "Lt", "Nd", "Zs", "Po", "Mn"]))


@pytest.fixture(scope="module")
def plain(run):
    translator = Translator.from_run(run)
    decode = DecodeConfig(beam_size=3, num_hypotheses=3, max_length=6)
    return Translator(translator.model, translator.codec, decode)


@pytest.fixture(scope="module")
def lowering(plain):
    return Translator(plain.model, plain.codec, plain.config, lower_capitals=True)


@pytest.mark.parametrize("text", CAPITALS + OTHERS)
def test_a_text_is_in_capitals_if_all_its_letters_are(text):
    assert normalization.in_capitals(text) == (text in CAPITALS)


@given(st.lists(LETTERS | st.text("AÉΣ 5!", max_size=4), min_size=1, max_size=5))
def test_the_rule_is_the_same_in_the_graph_and_in_the_program_without_this_package(texts):
    expected = [normalization.in_capitals(text) for text in texts]
    assert graph_tokenizer.in_capitals(tf.constant(texts)).numpy().tolist() == expected
    assert [run_in_ctranslate2.in_capitals(text) for text in texts] == expected


def test_a_text_in_capitals_is_translated_in_lower_case(plain, lowering):
    expected = plain.n_best([text.lower() for text in CAPITALS] + OTHERS)
    found = lowering.n_best(CAPITALS + OTHERS)
    for number, (row, same) in enumerate(zip(found, expected, strict=True)):
        form = str.upper if number < len(CAPITALS) else str
        assert row[0].text == form(same[0].text)
        assert row[0].score == pytest.approx(same[0].score, abs=1e-4)
    outputs = lowering.graph(jit_compile=False).predict(tf.constant(CAPITALS + OTHERS))
    assert [text.decode() for text in outputs["translation"].numpy()] == [r[0].text for r in found]


def test_prefixes_scores_and_alignments_are_those_of_lower_case(plain, lowering):
    sources, targets = ["TWENTY-ONE", "TWO"], ["EINUND", "ZWEI"]
    lowered = [[text.lower() for text in texts] for texts in (sources, targets)]
    found, expected = lowering(sources, targets), plain(*lowered)
    texts = [each.text for each in found]
    assert texts == [each.text.upper() for each in expected]
    assert all(map(str.startswith, texts, targets))
    scores = ([each.score for each in rows] for rows in (found, expected))
    np.testing.assert_allclose(*scores, atol=1e-4)
    np.testing.assert_allclose(
        [each.score for each in lowering.score(sources, targets)],
        [each.score for each in plain.score(*lowered)],
        atol=1e-5,
    )
    alignments = lowering.align(sources, targets), plain.align(*lowered)
    for alignment, of_lower in zip(*alignments, strict=True):
        assert alignment.source == of_lower.source
        np.testing.assert_allclose(alignment.weights, of_lower.weights, atol=1e-6)
