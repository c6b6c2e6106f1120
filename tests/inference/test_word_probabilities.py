"""The probability of each word of a translation, in Python, in graphs and in exports."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.inference.translator import Translator
from tf_transformer.inference.word_probabilities import of_copies, word_probabilities
from tf_transformer.text.graph_tokenizer import GraphTokenizer
from tf_transformer.text.tokenizer import Tokenizer

TEXTS = ["twenty-one", "", "one two six", "七 \u00a0 é", "17 +  4", "one hundred and two"]
SEARCHES = {
    "beam": {"beam_size": 3, "num_hypotheses": 3, "max_length": 9},
    "equal texts": {"beam_size": 3, "num_hypotheses": 3, "distinct": False},
    "greedy": {"beam_size": 1, "max_length": 9},
    "samples": {"sampling": True, "num_hypotheses": 2, "max_length": 9},
    "repetition": {"beam_size": 2, "repetition_penalty": 1.5, "max_length": 9},
}
WORDS = {"task_options": {"copy_without_letters": True}, "word_probabilities": True}


@functools.cache
def n_best(run, search, word_probabilities=True):
    """The predictions for `TEXTS` by a search without a length penalty."""
    options = {"length_penalty": 0.0, **SEARCHES[search], **WORDS}
    options["word_probabilities"] = word_probabilities
    return Translator.from_run(run, **options).n_best(TEXTS)


@pytest.mark.parametrize(
    "search",
    [pytest.param(x, marks=[] if x == "beam" else pytest.mark.slow) for x in SEARCHES],
)
def test_words_multiply_to_the_probability_of_the_translation(run, search):
    """A score without a length penalty is the log-probability of a hypothesis."""
    rows = n_best(run, search)
    for row in rows:
        for best in row:
            assert len(best.word_probabilities) == len(best.text.split())
            assert all(0 <= p <= 1 for p in best.word_probabilities)
            if best.text and search != "repetition":  # a penalty changes scores
                total = sum(map(math.log, best.word_probabilities))
                assert total == pytest.approx(best.score, rel=1e-4, abs=1e-3)
    assert any(len(best.word_probabilities) > 1 for row in rows for best in row)


def test_translations_are_equal_with_and_without_the_option(run):
    both = n_best(run, "beam"), n_best(run, "beam", word_probabilities=False)
    for row, plain in zip(*both, strict=True):
        assert [best._replace(word_probabilities=()) for best in row] == plain


def test_a_text_that_is_copied_is_certain(run):
    copy, *_ = n_best(run, "beam")[TEXTS.index("17 +  4")]
    assert (copy.text, copy.word_probabilities) == ("17 +  4", (1.0, 1.0, 1.0))
    texts = ["", " a \u00a0b\u3000c\n", "a"]
    assert [x.decode() for x in of_copies(tf.constant(texts)).numpy()] == ["", "1 1 1", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_export_gives_the_same(run, tmp_path, jit_compile):
    translator = Translator.from_run(run, batch_size=2, **SEARCHES["beam"], **WORDS)
    translator.save(tmp_path / "1", jit_compile)
    saved = Translator.load(tmp_path / "1")
    rows = translator.n_best(TEXTS)
    for row, of_export in zip(rows, saved.n_best(TEXTS), strict=True):
        for best, other in zip(row, of_export, strict=True):
            assert other.text == best.text
            np.testing.assert_allclose(other.word_probabilities, best.word_probabilities, 1e-3)
    for (best, *_), other in zip(rows, saved(TEXTS), strict=True):
        np.testing.assert_allclose(other.word_probabilities, best.word_probabilities, 1e-3)
    given = saved.n_best(["one"], prefixes=["ein "])[0][0]
    assert len(given.word_probabilities) == len(given.text.split()) > 0


def same_in_an_export(translator, texts, folder):
    """The predictions of a translator, which an export gives, too."""
    translator.save(folder / "1")
    rows, of_export = translator.n_best(texts), Translator.load(folder / "1").n_best(texts)
    for row, other in zip(rows, of_export, strict=True):
        for best, saved in zip(row, other, strict=True):
            assert len(best.word_probabilities) == len(best.text.split())
            np.testing.assert_allclose(saved.word_probabilities, best.word_probabilities, 1e-3)
    return rows


@pytest.mark.slow
def test_the_words_of_parts_follow_each_other(run, tmp_path):
    options = {**SEARCHES["beam"], "word_probabilities": True}
    sentences = ["Twenty-one.", "Seven! "]
    split = Translator.from_run(run, split="sentences", **options)
    rows = same_in_an_export(split, ["\n ".join(sentences), "", "one"], tmp_path)
    first, second = Translator.from_run(run, **options)(sentences)
    expected = first.word_probabilities + second.word_probabilities
    np.testing.assert_allclose(rows[0][0].word_probabilities, expected, 1e-3)


@pytest.mark.slow
def test_a_repaired_translation_has_the_probability_of_its_text(run, tmp_path):
    """The model does not keep the address, so each translation is repaired and encoded again."""
    texts = ["one https://a.b/c two", "see {name} and %s", "one"]
    keeping = Translator.from_run(run, keep=["common"], **SEARCHES["beam"], word_probabilities=True)
    best = [row[0] for row in same_in_an_export(keeping, texts, tmp_path)]
    assert "https://a.b/c" in best[0].text
    scores = keeping.score(texts[:2], [x.text for x in best[:2]])
    totals = [sum(map(math.log, x.word_probabilities)) for x in best[:2]]
    assert totals == pytest.approx([score.log_probability for score in scores], rel=1e-3)


@pytest.mark.slow
def test_exports_without_the_option_have_no_such_output(run):
    graph = Translator.from_run(run).graph()
    for signature in (graph.predict, graph.n_best):
        assert "word_probabilities" not in signature(tf.constant(["one"]))


@pytest.fixture(scope="module")
def tokenizer():
    """Its vocabulary lacks most characters, which are bytes."""
    return Tokenizer.train(["a house", "two  houses ëë"] * 20, vocabulary_size=300)


@pytest.mark.parametrize("text", ["a house", "two 漢 houses", "漢字 🙂🙂 é a", "a", "🙂"])
@pytest.mark.parametrize("end", [True, False])
def test_each_token_belongs_to_the_word_of_its_characters(tokenizer, text, end):
    """The oracle is `Tokenizer.word_of_pieces`, which maps places of characters."""
    ids = tokenizer.encode(text) if end else tokenizer.encode(text)[:-1]
    log_p = -0.1 * np.arange(1, len(ids) + 1, dtype=np.float32)
    word_of = [*tokenizer.word_of_pieces(text), *[len(text.split()) - 1] * end]
    expected = [
        math.exp(sum(p for p, of in zip(log_p, word_of, strict=True) if of == word))
        for word in range(len(text.split()))
    ]
    size = tokenizer.vocabulary_size

    def model(inputs):
        """Token t has the log-probability log_p[t], and the other tokens share the rest."""
        p = np.repeat((1 - np.exp(log_p))[:, None] / (size - 1), size, axis=1)
        p[np.arange(len(ids)), ids] = np.exp(log_p)
        return tf.constant(np.log(np.pad(p, [(0, 2), (0, 0)], constant_values=0.5))[None])

    padded = tf.constant(np.pad(ids, (0, 2)).astype(np.int32)[None, None])
    found = word_probabilities(model, GraphTokenizer(tokenizer), padded[0], padded).numpy()
    np.testing.assert_allclose([float(x) for x in found[0, 0].split()], expected, 1e-5)


def test_predictors_of_other_texts_refuse_the_option(run):
    translator = Translator.from_run(run)
    options = replace(translator.config, word_probabilities=True)
    with pytest.raises(InputError, match=r"decode.word_probabilities is for translators"):
        TextPredictor(translator.model, translator.codec, options)
