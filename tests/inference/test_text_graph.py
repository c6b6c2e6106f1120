"""The exported graph gives the translator's results in every signature, for any input."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import NEG_INF
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.text.special_ids import EOS_ID

ODD = [
    "one",
    "",
    "  \t ",
    "two hundred and twelve thousand, nine hundred",
    "twenty-one\x00\x07\x1b[31m",
    "\ud800 half a pair \udc00",
    "שלום 日本語 \U0001f44d\U0001f3fd",
    "one",
    "twenty " * 40,
    "x" * 500,
]
BROKEN = [b"\xff\xfe", b"one \xe2\x82", b"\xed\xa0\x80 two", b"\xf4\x90\x80\x80\xc0\x80"]


@pytest.fixture(scope="module")
def translator(run):
    """Its batches are so small that the graph needs several micro-batches."""
    options = {"beam_size": 4, "num_hypotheses": 3, "max_source_length": 30}
    return Translator.from_run(run, **options, batch_size=5, batch_tokens=60)


@pytest.fixture(scope="module")
def saved(translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "1"
    translator.save(path)
    return Translator.load(path)


def call(saved, signature, **texts):
    return saved._call(signature, **texts)


def assert_same(found, expected):
    assert [t.text for t in found] == [t.text for t in expected]
    np.testing.assert_allclose([t.score for t in found], [t.score for t in expected], atol=1e-4)


def test_a_saved_translator_gives_the_same_translations(translator, saved):
    assert_same(saved(ODD), translator(ODD))


def test_a_saved_translator_gives_the_same_n_best_lists(translator, saved):
    for found, expected in zip(saved.n_best(ODD), translator.n_best(ODD), strict=True):
        assert_same(found, expected)


def test_a_saved_translator_gives_the_same_scores_of_pairs(translator, saved):
    targets = ["eins", "", "zwei", "zweihundert " * 20, *ODD[4:]]
    found, expected = saved.score(ODD, targets), translator.score(ODD, targets)
    np.testing.assert_allclose(found, expected, atol=1e-3, rtol=1e-5)


@pytest.mark.slow
def test_a_saved_translator_leaves_out_equal_texts_as_the_translator_does(translator, tmp_path):
    """A word is one piece, or a blank and a letter."""
    tokenizer = translator.tokenizer
    pieces = {tokenizer.piece(i) for i in range(EOS_ID + 1, tokenizer.vocabulary_size)}
    options = {"beam_size": 8, "num_hypotheses": 5, "max_length": 4}
    decode = DecodeConfig(**options, excluded_tokens=tuple(pieces - {"▁t", "▁", "t"}))
    other = Translator(translator.model, translator.codec, decode)
    other.save(tmp_path / "1")
    for found, expected in zip(
        Translator.load(tmp_path / "1").n_best(ODD), other.n_best(ODD), strict=True
    ):
        assert_same(found, expected)
        assert len({t.text for t in found}) == len(found)


def test_missing_hypotheses_are_empty_and_have_a_finite_score(saved):
    found = call(saved, "n_best", text=["", "one"])
    assert found["translations"].shape == (2, 3)
    assert found["translations"][0].tolist() == [b"", b"", b""]
    assert found["scores"][0].tolist() == [0.0, NEG_INF, NEG_INF]


def test_broken_utf8_is_replaced_as_python_replaces_it(translator, saved):
    found = saved._model.signatures["serving_default"](text=tf.constant(BROKEN))
    expected = translator([text.decode("utf-8", "replace") for text in BROKEN])
    assert [t.decode() for t in found["translation"].numpy()] == [t.text for t in expected]
    np.testing.assert_allclose(found["score"], [t.score for t in expected], atol=1e-4)


def test_truncated_marks_texts_that_were_cut_and_unfinished_translations(translator, saved):
    lengths = [len(translator.tokenizer.encode(text)) for text in ODD]
    too_long = [length > 30 for length in lengths]
    assert 0 < sum(too_long) < len(ODD)
    predictions = translator(ODD)
    truncated = [prediction.truncated for prediction in predictions]
    assert [prediction.cut for prediction in predictions] == too_long
    assert sum(too_long) < sum(truncated) < len(ODD)
    assert call(saved, "serving_default", text=ODD)["truncated"].tolist() == truncated
    assert call(saved, "n_best", text=ODD)["truncated"].tolist() == truncated
    for loaded in (saved(ODD), [row[0] for row in saved.n_best(ODD)]):
        assert [prediction.truncated for prediction in loaded] == truncated
        assert [prediction.cut for prediction in loaded] == too_long
    for pair in ({"source": ODD, "target": [""] * 10}, {"source": [""] * 10, "target": ODD}):
        assert call(saved, "score", **pair)["truncated"].tolist() == too_long


def test_an_empty_batch_gives_empty_outputs(saved):
    assert saved([]) == []
    assert saved.n_best([]) == []
    assert saved.score([], []) == []


def test_a_large_batch_of_different_lengths_gives_the_same_translations(translator, saved):
    texts = [*ODD, *("one two three " * (n % 7) for n in range(60))]
    assert_same(saved(texts), translator(texts))


def test_lists_of_unequal_length_are_an_error(saved):
    with pytest.raises(InputError, match="expected as many translations as texts, got 1 trans"):
        saved.score(["one", "two"], ["eins"])
    with pytest.raises(InputError, match="as many targets as sources"):
        call(saved, "score", source=["one", "two"], target=["eins"])


@pytest.mark.parametrize("method", ["__call__", "n_best"])
def test_one_text_in_place_of_a_list_is_an_error(saved, method):
    with pytest.raises(InputError, match=r"expected a list of texts, got one text \(str\)"):
        getattr(saved, method)("twenty-one")
    with pytest.raises(InputError, match=r"expected a list of translations, got one text \(str\)"):
        saved.score(["twenty-one"], "einundzwanzig")


def test_a_folder_without_a_model_is_an_error(tmp_path):
    with pytest.raises(InputError, match="is not a SavedModel: it has no saved_model"):
        Translator.load(tmp_path)


def test_a_model_without_these_signatures_is_an_error(tmp_path):
    module = tf.Module()
    signature = tf.function(lambda text: {"translation": text}).get_concrete_function(
        tf.TensorSpec((None,), tf.string, name="text")
    )
    tf.saved_model.save(module, tmp_path, signatures=signature)
    with pytest.raises(InputError, match=r"has no signature n_best, score\. Export it again"):
        Translator.load(tmp_path)


def test_a_saved_translator_without_metadata_has_none(saved):
    assert saved.metadata == {}
