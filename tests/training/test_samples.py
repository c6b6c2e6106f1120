"""Samples of validations: a table of predictions, and a picture of attention."""

import html
import importlib.util
import io
import re
from types import SimpleNamespace

import matplotlib.image
import pytest
import tensorflow as tf
from conftest import small_config

from tf_transformer.config import Config, DecodeConfig, ModelConfig
from tf_transformer.config.task import ClassificationOptions
from tf_transformer.data.examples import spread
from tf_transformer.run.run import Run
from tf_transformer.tasks.classification import CLASSIFICATION
from tf_transformer.tasks.language_modeling import LANGUAGE_MODELING
from tf_transformer.tasks.masked_language_modeling import MASKED_LANGUAGE_MODELING
from tf_transformer.tasks.task import TestSet
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.training import validation
from tf_transformer.visualization.attention_picture import last_layer_picture

TEXTS = [
    "a | b",
    "<script>alert(1)</script> & **bold** _x_ `code` [link](http://x)",
    r"back\slash \| &amp; $1",
    "# title",
]


@pytest.fixture(scope="module")
def logged(run):
    """By tag and number of the update, the strings of the run's TensorBoard log."""
    return {
        (value.tag, event.step): list(value.tensor.string_val)
        for events in (run / "logs").glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }


def test_tensorboard_gets_the_predictions_of_each_validation(run, logged):
    """Oracle: the predictions of the last weights."""
    assert [step for tag, step in logged if tag == "samples"] == [2, 4]
    config, codec = small_config(), Run.load(run).codec
    model = Run.load(run).model(TRANSLATION.build_model)
    predictor = TRANSLATION.predictor(model, codec, config.decode.greedy)
    examples = TRANSLATION.test_set(TRANSLATION.load_splits(config).valid)
    inputs, references = (spread(texts, 4) for texts in examples)
    rows = [
        (source, found.text, reference)
        for source, found, reference in zip(inputs, predictor(inputs), references, strict=True)
    ]
    (table,) = logged["samples", 4]
    cells = [line.strip("| ").split(" | ") for line in table.decode().splitlines()[2:]]
    assert [tuple(map(html.unescape, row)) for row in cells] == rows


def test_tensorboard_gets_a_picture_of_each_validation(logged):
    for step in (2, 4):
        width, height, png = logged["attention", step]
        assert matplotlib.image.imread(io.BytesIO(png)).shape[:2] == (int(height), int(width))
        assert min(int(height), int(width)) > 100


def test_samples_need_no_search(run, monkeypatch):
    predictor = TRANSLATION.predictor(
        Run.load(run).model(TRANSLATION.build_model),
        Run.load(run).codec,
        DecodeConfig(),
    )
    monkeypatch.setattr(predictor, "_search", None)
    found = validation.samples_of(TRANSLATION, predictor, TestSet(["one"], ["eins"]), ["zwei"])
    assert "| one | zwei | eins |" in found.table
    assert found.picture


def test_the_table_has_rows_from_all_of_the_text():
    """Oracle: one row of each quarter."""
    lines = [str(number) for number in range(400)]
    rows = validation.table(TestSet(lines, lines), lines).splitlines()[2:]
    assert [int(row.split()[1]) // 100 for row in rows] == [0, 1, 2, 3]


def test_texts_stay_as_they_are_in_tensorboards_page():
    plugin_util = pytest.importorskip("tensorboard.plugin_util")
    page = plugin_util.markdown_to_safe_html(validation.table(TestSet(TEXTS, TEXTS[::-1]), TEXTS))
    cells = [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", page)]
    assert cells == [text for row in zip(TEXTS, TEXTS, TEXTS[::-1], strict=True) for text in row]


def test_a_cell_is_one_line_of_bounded_length():
    cells = validation.table(TestSet(["a\tb\nc"], [""]), ["x" * 600]).splitlines()[2]
    assert cells == f"| a b c | {'x' * 500}… |  |"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a red house", "ein rotes Haus"], vocabulary_size=300)


def predictor_of(task, tokenizer, **options):
    config = Config(
        model=ModelConfig(**({"num_layers": 2, "d_model": 8, "d_ff": 8, "num_heads": 2} | options)),
        task=ClassificationOptions(labels=("x", "y")) if task is CLASSIFICATION else "translation",
    )
    codec = Codec(tokenizer)
    model = task.build_model(config, codec, "float32")
    return task.predictor(model, codec, DecodeConfig())


@pytest.mark.parametrize(
    ("task", "options", "kind", "queries", "keys"),
    [
        (TRANSLATION, {}, "cross", "▁ein▁Haus", "▁a▁house"),
        (TRANSLATION, {"architecture": "luong"}, "cross", "▁ein▁Haus", "▁a▁house"),
        (LANGUAGE_MODELING, {}, "decoder", "▁ein▁Haus", "<s>▁ein▁Haus"),
        (MASKED_LANGUAGE_MODELING, {}, "encoder", "▁a▁house", "▁a▁house"),
        (CLASSIFICATION, {}, "encoder", "▁a▁house", "▁a▁house"),
    ],
)
def test_a_picture_shows_attention_between_pieces(
    tokenizer, monkeypatch, task, options, kind, queries, keys
):
    drawn = []
    monkeypatch.setattr(validation, "last_layer_picture", lambda record, _: drawn.append(record))
    examples = task.attended(TestSet(["a house"], ["ein Haus"]))
    validation.picture(predictor_of(task, tokenizer, **options), examples)
    (found,) = drawn[0].maps
    pieces = ["".join(each.words).removesuffix("</s>") for each in (found.queries, found.keys)]
    assert (found.kind, *pieces) == (kind, queries, keys)
    rows = (len(found.queries.words), len(found.keys.words))
    assert found.by_words().shape[2:] == rows


def test_the_example_of_a_picture_has_a_length_near_80(tokenizer, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        validation, "last_layer_picture", lambda record, _: drawn.append(record.text)
    )
    predictor = predictor_of(TRANSLATION, tokenizer)
    texts = ["a", "a house " * 4, "a house " * 12]
    validation.picture(predictor, TestSet(texts, texts))
    assert drawn == [texts[1]]
    assert validation.picture(predictor, TestSet(texts[2:] * 2, [texts[2] * 2] * 2)) == b""


def test_no_picture_without_attention_weights(tokenizer):
    examples = TestSet([""], ["a house"])
    linear = predictor_of(LANGUAGE_MODELING, tokenizer, attention="linear")
    assert validation.picture(linear, examples) == b""
    assert validation.picture(SimpleNamespace(), examples) == b""
    other = predictor_of(TRANSLATION, tokenizer)
    other.model = SimpleNamespace()  # a search does not need `run`
    assert validation.picture(other, examples) == b""


def test_no_picture_without_matplotlib(tokenizer, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    predictor = predictor_of(TRANSLATION, tokenizer)
    found = validation.samples_of(TRANSLATION, predictor, TestSet(["a"], ["ein"]), ["Haus"])
    assert found.picture == b""
    assert "| a | Haus | ein |" in found.table


def test_words_with_dollars_are_no_formulas(tokenizer):
    predictor = predictor_of(TRANSLATION, tokenizer)
    assert validation.picture(predictor, TestSet(["$_$ house"], ["$^$ 日本"]))[1:4] == b"PNG"


def test_the_last_layer_is_drawn_with_its_number(tokenizer):
    """Of two layers with three heads, two rows of two maps."""
    predictor = predictor_of(TRANSLATION, tokenizer, num_heads=3, d_model=12)
    (record,) = predictor.attention(["a house"], ["ein Haus"])
    svg = last_layer_picture(record, ".svg").decode()
    titles = re.findall(">([^<>]*head[^<>]*)</text>", svg)
    assert titles == [f"decoder to encoder layer 2, head {head}" for head in (1, 2, 3)]
