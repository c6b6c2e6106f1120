"""Texts of several sentences: each sentence is translated alone, and spaces and line ends stay."""

import pathlib
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer import tasks
from tf_transformer.config import Config, DecodeConfig, ModelConfig
from tf_transformer.config.task import ClassificationOptions
from tf_transformer.errors import InputError
from tf_transformer.imports import marian_folder
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.parts import LongParts, parts_of
from tf_transformer.inference.translator import Translator
from tf_transformer.parsing.linearization import symbols
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
SENTENCES = ["Twenty-one.", "Seven!", "Two hundred and twelve?", "17.", "He said Mr. Seven…"]
SPACES = [" ", "\n", "\r\n\n", "  ", "\u2028"]
TEXTS = ["", " \n", "One", "Seven! Twenty-one.", "\n Seven.\nTwo.\n", "七。二十。", "Mr. One left."]


@pytest.fixture(scope="module")
def whole(run):
    return Translator.from_run(run, beam_size=3, num_hypotheses=3, max_length=6)


@pytest.fixture(scope="module")
def splitting(whole):
    options = replace(whole.config, split="sentences", split_language="en")
    return Translator(whole.model, whole.codec, options)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """An imported model with target tags."""
    folder = tmp_path_factory.mktemp("imported") / "model"
    shutil.copytree(FIXTURES / "shared", folder)
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", folder)
    imported = marian_folder.read(folder)
    config = DecodeConfig(beam_size=2, max_extra_length=3)
    return Translator(imported.model, imported.codec, config)


def test_the_links_of_a_text_are_those_of_its_sentences(whole, splitting):
    targets = ["Einundzwanzig, ja.", "Sieben!", "Zwei?"]
    expected, places = [], [0, 0]
    for source, target, alignment in zip(
        SENTENCES, targets, whole.align(SENTENCES[:3], targets), strict=False
    ):
        expected += [(s + places[0], t + places[1]) for s, t in alignment.links()]
        places = [n + len(side.split()) for n, side in zip(places, (source, target), strict=True)]
    text, translation = " ".join(SENTENCES[:3]), "\n".join(targets)
    (together,) = splitting.align([text], [translation])
    assert together.links() == expected
    assert together.source.words == [*text.split(), "</s>"]
    np.testing.assert_allclose(together.weights.sum(axis=1), 1, atol=1e-5)
    assert splitting.align([], []) == []


@pytest.mark.parametrize("pair", [("One. Two.", "Eins"), ("七。二十。", "Sieben. Zwanzig.")])
def test_sides_with_unlike_sentences_are_aligned_as_a_whole(whole, splitting, pair):
    (one,), (other,) = (model.align(*([side] for side in pair)) for model in (whole, splitting))
    np.testing.assert_array_equal(one.weights, other.weights)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5), st.data())
def test_a_text_is_translated_as_its_sentences_with_its_spaces(whole, splitting, sentences, data):
    spaces = [data.draw(st.sampled_from(SPACES)) for _ in sentences[1:]] + [""]
    text = "".join(map("".join, zip(sentences, spaces, strict=True)))
    expected = whole.n_best(sentences)
    best, *others = splitting.n_best([text])[0]
    translations = [row[0].text for row in expected]
    assert best.text == "".join(map("".join, zip(translations, spaces, strict=True)))
    assert best.parts == len(sentences)
    assert best.score == pytest.approx(np.mean([row[0].score for row in expected]), abs=1e-4)
    scores = [best.score, *(other.score for other in others)]
    assert scores == sorted(scores, reverse=True)


def test_the_graph_gives_the_same(splitting):
    found, graph = splitting.n_best(TEXTS), splitting._graph
    outputs = graph.predict(tf.constant(TEXTS))
    assert [x.decode() for x in outputs["translation"].numpy()] == [row[0].text for row in found]
    assert outputs["parts"].numpy().tolist() == [row[0].parts for row in found]
    assert outputs["truncated"].numpy().tolist() == [row[0].truncated for row in found]
    np.testing.assert_allclose(outputs["score"], [row[0].score for row in found], atol=1e-4)
    of_all = graph.n_best(tf.constant(TEXTS))
    for texts, row in zip(of_all["translations"].numpy(), found, strict=True):
        assert [x.decode() for x in texts[: len(row)]] == [x.text for x in row]


def test_white_space_stays_and_parts_are_counted(splitting):
    best = splitting(TEXTS)
    assert [x.parts for x in best] == [0, 0, 1, 2, 2, 2, 1]
    assert [x.text for x in best[:2]] == TEXTS[:2]
    assert best[4].text.startswith("\n ")
    assert best[4].text.endswith("\n")


def test_a_text_with_a_prefix_stays_whole(whole, splitting):
    text, prefix = "Seven! Twenty-one.", "ein"
    (best,), (expected,) = (x([text], [prefix]) for x in (splitting, whole))
    assert (best.text, best.parts) == (expected.text, 1)
    assert splitting([text], [""]) == splitting([text])


@pytest.mark.slow
def test_a_tag_counts_for_all_sentences(tagged):
    options = replace(tagged.config, split="sentences")
    splitting = Translator(tagged.model, tagged.codec, options)
    sentences = ["A house.", "Two dogs!"]
    expected = [x.text for x in tagged([f">>nld<< {sentence}" for sentence in sentences])]
    in_text = splitting([f">>nld<< {sentences[0]}\n{sentences[1]}"])
    assert in_text[0].text == "\n".join(expected)
    assert splitting(["\n".join(sentences)], languages=[">>nld<<"]) == in_text
    graph = splitting.graph()
    columns = {"language": [">>nld<<"]}
    given = [tf.constant(columns.get(kind.name, [""])) for kind in graph.inputs]
    outputs = graph.predict(tf.constant(["\n".join(sentences)]), *given)
    assert outputs["translation"].numpy()[0].decode() == in_text[0].text


def test_each_sentence_has_its_own_case(run):
    texts = ["SEVEN DOGS. Twenty-one.", "Is It A Big House? EU. TWO DOGS!"]
    rules = {"task_options": {"lower_capitals": True}, "max_length": 6}
    splitting = Translator.from_run(run, split="sentences", **rules)
    whole = Translator.from_run(run, **rules)
    found = [x.text for x in splitting(texts)]
    assert found == [
        " ".join(x.text for x in whole(["SEVEN DOGS.", "Twenty-one."])),
        " ".join(x.text for x in whole(["Is It A Big House?", "EU.", "TWO DOGS!"])),
    ]
    in_graph = splitting._graph.predict(tf.constant(texts))["translation"].numpy()
    assert [text.decode() for text in in_graph] == found


def test_xla_gives_the_same(splitting):
    expected = splitting(TEXTS)
    outputs = splitting.graph(jit_compile=True).predict(tf.constant(TEXTS))
    assert [x.decode() for x in outputs["translation"].numpy()] == [x.text for x in expected]


@pytest.mark.parametrize("task", ["language_modeling", "classification", "parsing"])
def test_only_translators_divide_texts(task):
    options = ClassificationOptions(labels=("a", "b")) if task == "classification" else task
    size = ModelConfig(num_layers=1, d_model=8, d_ff=8, num_heads=2)
    config = Config(model=size, task=options, decode=DecodeConfig(split="sentences"))
    kind = tasks.get(task)
    actions = symbols(["S"], "in_order") if task == "parsing" else ()
    codec = Codec(Tokenizer.train(["a house", "ein Haus"], 300, symbols=actions))
    model = kind.build_model(config, codec, "float32")
    with pytest.raises(InputError, match=r"decode.split is for translators.* Give --split none"):
        kind.predictor(model, codec, config.decode)


def test_notices_are_those_of_the_sentences(splitting):
    assert Notice.SEVERAL_SENTENCES not in splitting(["Seven. Twenty-one."])[0].notices
    assert Notice.SEVERAL_LINES not in splitting(["Seven.\nTwenty-one."])[0].notices


def test_a_sentence_does_not_depend_on_the_other_texts(splitting):
    assert [splitting([text])[0].text for text in TEXTS] == [x.text for x in splitting(TEXTS)]


def test_progress_counts_texts(splitting):
    calls = []
    splitting(TEXTS, progress=lambda inputs, tokens: calls.append((inputs, tokens)))
    assert sum(inputs for inputs, _ in calls) == 5
    assert sum(tokens for _, tokens in calls) > 0


@pytest.mark.slow
def test_the_saved_model_gives_the_same(splitting, tmp_path):
    splitting.save(tmp_path / "1")
    saved, found = Translator.load(tmp_path / "1").n_best(TEXTS), splitting.n_best(TEXTS)
    for row, expected in zip(saved, found, strict=True):
        assert [(x.text, x.parts) for x in row] == [(x.text, x.parts) for x in expected]
        assert [x.unseen_words for x in row] == [x.unseen_words for x in expected]
        names = [[" ".join(x.notices) for x in of_side] for of_side in (row, expected)]
        assert names[0] == names[1]  # of all parts
    several = {Notice.SEVERAL_LINES, Notice.SEVERAL_SENTENCES}
    assert not several & {notice for row in saved for notice in row[0].notices}


@pytest.fixture(scope="module")
def narrow(whole):
    options = replace(whole.config, split="sentences", split_language="en", max_source_length=16)
    return Translator(whole.model, whole.codec, options)


CLAUSES = ["two hundred", "seven,", "twenty-one;", "nine: “", "十二，", "three thousand"]


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from(CLAUSES), max_size=12).map(" ".join), max_size=3))
def test_a_long_sentence_is_divided_at_clauses_and_nothing_is_dropped(narrow, texts):
    graph = narrow.graph(jit_compile=False)
    parts, (of_parts,) = graph.divide(tf.constant(texts, tf.string))
    joined = [b""] * len(texts)
    for part, after, text in zip(*(x.numpy() for x in parts[:3]), strict=True):
        joined[text] += part + after
    assert [text.decode() for text in joined] == texts
    assert of_parts.numpy().tolist() == parts.texts.numpy().tolist()
    assert not graph.encode(of_parts)[1].numpy().any()  # cut
    translations = narrow(texts)
    assert not any(x.cut for x in translations)
    assert [x.parts for x in translations] == parts.counts.numpy().tolist()


def test_a_sentence_that_fits_stays_whole(narrow):
    found = narrow(["seven,", "seven, " * 20 + "end"])
    assert found[0].parts == 1
    assert found[1].parts > 3


def test_a_kept_span_is_never_divided():
    """Neither as the end of a sentence nor at the clauses and words of a long sentence."""
    kept, span = r"\{[^{}]*\}", "{one, two; three. Four!}"
    texts = tf.constant([f"Go, {span} now; {span} then, stop. {span} Yes."])
    whole = tf.constant([False])
    parts = parts_of(texts, whole, "en", kept)
    assert parts.texts.numpy().tolist() == [texts.numpy()[0][:-5], b"Yes."]
    words = LongParts(tf.strings.length, 10, kept)(parts, whole)
    assert b"".join(words.texts.numpy()).count(span.encode()) == 3
    joined = tf.strings.join([words.texts, words.after])
    assert tf.strings.reduce_join(joined).numpy() == texts.numpy()[0]
    assert words.texts.numpy().tolist().count(span.encode()) == 3
