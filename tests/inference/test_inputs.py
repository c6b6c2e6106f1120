"""Inputs beside a text: a record is enough for predictors and exports."""

import re
from dataclasses import replace

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from reference_terms import find_terms

from tf_transformer.errors import InputError
from tf_transformer.inference.inputs import INPUTS, Input
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.inference.translator import Translator
from tf_transformer.models.ensemble import Ensemble
from tf_transformer.text.inline_terms import marked
from tf_transformer.text.kept_spans import pattern_of, spans
from tf_transformer.text.normalization import is_blank
from tf_transformer.text.terms import parse_terms

TEXTS = ["twenty", "three", ""]


class WithSuffixes(SearchGraph):
    optional_inputs = (
        *INPUTS,
        Input(
            "suffix",
            "suffixes",
            "source",
            lambda graph, text, given: tf.strings.join([text, given]),
        ),
    )


class TextsAlone(SearchGraph):
    optional_inputs = ()


@pytest.fixture(scope="module")
def plain(run):
    return Translator.from_run(run)


def with_graph(translator, graph):
    kind = type("Other", (Translator,), {"graph_type": graph})
    return kind(translator.model, translator.codec, translator.config)


@pytest.mark.slow
def test_an_input_needs_a_record_alone(plain, tmp_path):
    other = with_graph(plain, WithSuffixes)
    suffixes, prefixes = ["-one", "", "two"], ["", "z", ""]
    expected = plain(["twenty-one", "three", "two"], prefixes)
    found = other(TEXTS, prefixes, suffixes=suffixes)
    assert [each.text for each in found] == [each.text for each in expected]
    case = other.signatures(TEXTS)["with_inputs"]
    assert list(case.inputs) == ["text", "prefix", "terms", "suffix"]
    other.save(tmp_path / "1")
    served = tf.saved_model.load(str(tmp_path / "1")).signatures
    given = {"text": TEXTS, "prefix": prefixes, "terms": [""] * 3, "suffix": suffixes}
    inputs = {name: tf.constant(column) for name, column in given.items()}
    outputs = served["with_inputs"](**inputs)["translation"].numpy()
    assert [text.decode() for text in outputs] == [each.text for each in expected]
    with pytest.raises(tf.errors.InvalidArgumentError, match="one string for each text"):
        served["with_inputs"](**inputs | {"prefix": tf.constant(["z"])})


def test_an_unknown_input_is_an_error(plain):
    with pytest.raises(
        InputError, match=r"takes no suffixes; it takes prefixes, terms\. Leave out --s"
    ):
        plain(TEXTS, suffixes=TEXTS)
    with pytest.raises(InputError, match="takes no prefixes; it takes texts alone"):
        with_graph(plain, TextsAlone)(TEXTS, ["", "", ""])


@pytest.mark.slow
def test_a_graph_and_its_export_may_have_no_inputs_beside_texts(plain, tmp_path):
    without = with_graph(plain, TextsAlone)
    without.save(tmp_path / "1")
    saved = Translator.load(tmp_path / "1")
    for translate in (without, saved):
        assert [each.text for each in translate(TEXTS)] == [each.text for each in plain(TEXTS)]
        with pytest.raises(InputError, match="takes no prefixes; it takes texts alone"):
            translate(TEXTS, ["", "", ""])


TERMS = "twenty\tzwölf\nthree\tsieben acht\nnothing\tnull\none\tDREI"
WITH_TERMS = ["twenty-one", "Three hundred", "four", "three, three", "", "7"]
TARGETS = [["zwölf", "DREI"], ["sieben acht"], [], ["sieben acht"] * 2, [], []]
ALL_OPTIONS = {"split": "sentences", "keep": ("common",), "word_probabilities": True}


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        pytest.param(
            {"beam_size": 4, "num_hypotheses": 3, "no_repeat_ngram_size": 1},
            marks=pytest.mark.slow,
        ),
        pytest.param({"sampling": True, "num_hypotheses": 2}, marks=pytest.mark.slow),
        pytest.param({"terms_as": "both", "split": "sentences"}, marks=pytest.mark.slow),
        pytest.param(ALL_OPTIONS, marks=pytest.mark.slow),
    ],
)
def test_terms_stand_in_each_translation_and_change_no_other(run, options):
    translator = Translator.from_run(run, **options)
    given = [TERMS] * len(WITH_TERMS)
    rows = translator.n_best(WITH_TERMS, terms=given)
    plain_rows = translator.n_best(WITH_TERMS)
    for text, row, without, targets in zip(WITH_TERMS, rows, plain_rows, TARGETS, strict=True):
        if not targets:
            assert [x.text for x in row] == [x.text for x in without]
        for prediction in row:
            words = f" {prediction.text[:1].lower()}{prediction.text[1:]} "
            for target in targets:
                found = re.findall(rf"(?<!\w){target}(?!\w)", words, re.IGNORECASE)
                assert len(found) >= targets.count(target), (text, prediction.text)
        (alone,) = translator.n_best([text], terms=[TERMS])
        assert [x.text for x in alone] == [x.text for x in row]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["compiled", "parallel", "ensemble"])
def test_terms_are_equal_in_other_forms_of_the_search(run, form):
    """XLA compiles no search with terms, so a graph for it has the usual one, too."""
    translator = Translator.from_run(run, beam_size=4)
    expected = [x.text for x in translator(WITH_TERMS[:2], terms=[TERMS] * 2)]
    parallel = replace(translator.config, parallel_batches=2)
    model, config = translator.model, translator.config
    if form == "ensemble":
        model = Ensemble([model, model])
    other = Translator(model, translator.codec, parallel if form == "parallel" else config)
    columns = {"terms": [TERMS] * 2, "prefix": [""] * 2}
    graph = other.graph(jit_compile=form == "compiled")
    given = [tf.constant(columns[kind.name]) for kind in graph.inputs]
    found = graph.predict(tf.constant(WITH_TERMS[:2]), *given)["translation"].numpy()
    assert [text.decode() for text in found] == expected


@pytest.mark.slow
def test_terms_are_equal_in_an_export_and_after_a_prefix(run, tmp_path):
    translator = Translator.from_run(run, **ALL_OPTIONS)
    translator.save(tmp_path / "1")
    saved = Translator.load(tmp_path / "1")
    texts = [*WITH_TERMS, "three {a}. twenty"]
    given = {"prefixes": ["", "acht", *[""] * 5], "terms": [TERMS] * len(texts)}
    expected = translator(texts, **given)
    assert [x.text for x in saved(texts, **given)] == [x.text for x in expected]
    assert expected[1].text.startswith("acht")
    assert "sieben acht" in expected[1].text
    assert "{a}" in expected[-1].text


@pytest.fixture(scope="module")
def reader(run):
    return Translator.from_run(run, terms_as="text", split="sentences", keep=("common",))


@pytest.fixture(scope="module")
def graph(reader):
    return reader.graph()


WORDS = st.sampled_from(
    [
        "three",
        "Three",
        "twenty",
        "nothing",
        "{a}",
        "three.org",
        "<b>",
        "é",
        ".",
        "\n",
        "\x01",
        ">>x<<",
    ]
)


@given(st.lists(WORDS).map(" ".join), st.sampled_from(["", TERMS, "three\t{a}", "three\tdreißig"]))
def test_a_model_reads_terms_beside_the_phrases_where_they_apply(graph, text, terms):
    """The run's vocabulary has bytes, so it can read any translation."""
    expected, end = "", 0
    for start, stop, target in find_terms(masked(text), parse_terms(terms)):
        if not spans(target):
            expected += text[end:start] + "".join(marked(text[start:stop], target))
            end = stop
    expected += text[end:]
    found = graph.with_terms(graph.clean(tf.constant([text]))[0], tf.constant([terms]))
    assert found.numpy()[0].decode() == ("" if is_blank(text) else expected)
    assert graph.untagged(found).numpy()[0].decode() == ("" if is_blank(text) else text)


def masked(text):
    return re.sub(pattern_of(["common"]), _masked_span, text, flags=re.ASCII)


def _masked_span(match):
    return match[0] if match[2] or match[4] else "\x01" * len(match[0])


@pytest.mark.parametrize("how", ["python", pytest.param("export", marks=pytest.mark.slow)])
def test_terms_that_a_model_reads_change_no_other_text(reader, tmp_path, how):
    if how == "export":
        reader.save(tmp_path / "1")
        other = Translator.load(tmp_path / "1")
    else:
        other = Translator(reader.model, reader.codec, replace(reader.config, batch_size=1))
    texts = [*WITH_TERMS, "three {a}. Twenty"]
    expected = reader(texts, terms=[TERMS] * len(texts))
    assert [x.text for x in other(texts, terms=[TERMS] * len(texts))] == [x.text for x in expected]
    assert "{a}" in expected[-1].text
    assert expected[-1].parts == 2
    plain_texts = [x.text for x in reader(texts)]
    assert [x.text for x in expected][2::2][:2] == plain_texts[2::2][:2]
    assert expected[0].text != plain_texts[0]


def test_a_text_that_is_too_long_with_its_terms_is_read_without(run):
    graph = Translator.from_run(run, terms_as="text", max_source_length=12).graph()
    terms = tf.constant(["three\t" + "sieben " * 9])
    assert graph.with_terms(tf.constant(["three"]), terms).numpy().tolist() == [b"three"]


def test_a_wrong_line_of_terms_is_an_error(plain):
    with pytest.raises(InputError, match="line 2 of the terms must be a phrase, one tab"):
        plain(["one"], terms=["one\teins\ntwo zwei"])
