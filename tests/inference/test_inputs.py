"""Inputs beside a text: a record is enough for predictors and exports."""

import pytest
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.inference.inputs import INPUTS, Input
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.inference.translator import Translator

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


def test_an_input_needs_a_record_alone(plain, tmp_path):
    other = with_graph(plain, WithSuffixes)
    suffixes, prefixes = ["-one", "", "two"], ["", "z", ""]
    expected = plain(["twenty-one", "three", "two"], prefixes)
    found = other(TEXTS, prefixes, suffixes=suffixes)
    assert [each.text for each in found] == [each.text for each in expected]
    case = other.signatures(TEXTS)["with_inputs"]
    assert list(case.inputs) == ["text", "prefix", "suffix"]
    other.save(tmp_path / "1")
    served = tf.saved_model.load(str(tmp_path / "1")).signatures
    given = {"text": TEXTS, "prefix": prefixes, "suffix": suffixes}
    inputs = {name: tf.constant(column) for name, column in given.items()}
    outputs = served["with_inputs"](**inputs)["translation"].numpy()
    assert [text.decode() for text in outputs] == [each.text for each in expected]
    with pytest.raises(tf.errors.InvalidArgumentError, match="one string for each text"):
        served["with_inputs"](**inputs | {"prefix": tf.constant(["z"])})


def test_an_unknown_input_is_an_error(plain, tmp_path):
    with pytest.raises(InputError, match=r"takes no suffixes; it takes prefixes\. Leave out --suf"):
        plain(TEXTS, suffixes=TEXTS)
    without = with_graph(plain, TextsAlone)
    without.save(tmp_path / "1")
    saved = Translator.load(tmp_path / "1")
    for translate in (without, saved):
        assert [each.text for each in translate(TEXTS)] == [each.text for each in plain(TEXTS)]
        with pytest.raises(InputError, match="takes no prefixes; it takes texts alone"):
            translate(TEXTS, ["", "", ""])
