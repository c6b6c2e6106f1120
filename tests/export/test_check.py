"""The comparison of an export with its run: tolerances, and the fraction of different answers."""

import types

import keras
import pytest

from tf_transformer.decoding import NEG_INF
from tf_transformer.export.check import Answer, answers, compare, sentences_for
from tf_transformer.layers.int8 import Int8Policy
from tf_transformer.run.run import Run


def test_answers_have_the_first_text_and_all_scores_of_a_sentence():
    outputs = {
        "translations": [["a", "b"], ["c", ""]],
        "scores": [[-1.0, -2.0], [-3.0, NEG_INF]],
        "label": ["x", "y"],
        "confidence": [0.5, 0.25],
    }
    assert answers(outputs) == [
        Answer(["x", "a"], [0.5, -1.0, -2.0]),
        Answer(["y", "c"], [0.25, -3.0]),
    ]
    assert answers({"scores": [], "translations": []}) == []


@pytest.mark.parametrize(
    ("dtype", "sampling", "shift", "allowed"),
    [
        ("float32", False, 0.0009, 0),
        ("float32", True, 0.0009, 1),
        ("bfloat16", False, 0.09, 5),
        ("bfloat16", True, 0.09, 10),
        ("int8", False, 0.04, 0),
        ("int8", True, 0.04, 10),
    ],
)
@pytest.mark.parametrize(
    "wrong", [Answer(["wrong"], [-1.0, -2.0]), Answer(["x"], [-1.0, -2.2]), Answer(["x"], [-1.0])]
)
def test_more_differences_than_rounding_explains_are_an_error(
    dtype, sampling, shift, allowed, wrong
):
    """Ten sentences: all scores shifted within the tolerance, and some wrong answers."""
    policy = Int8Policy() if dtype == "int8" else keras.DTypePolicy(dtype)
    predictor = types.SimpleNamespace(
        model=types.SimpleNamespace(dtype_policy=policy, compute_dtype=policy.compute_dtype),
        config=types.SimpleNamespace(sampling=sampling),
    )
    expected = [Answer(["x"], [-1.0, -2.0])] * 10

    def compare_with(count: int) -> None:
        found = [wrong] * count + [Answer(["x"], [-1.0 + shift, -2.0])] * (10 - count)
        compare("n_best", predictor, list("abcdefghij"), expected, found)

    compare_with(allowed)
    if allowed < 10:
        message = rf"the export differs .*: {allowed + 1} of 10 answers of the signature n_best\. "
        with pytest.raises(RuntimeError, match=message + r"Input: 'a'; run: \['x'\] \[-1.0"):
            compare_with(allowed + 1)


@pytest.mark.parametrize("keep", [(), ("common",)])
def test_an_export_that_keeps_spans_is_checked_with_spans(keep, run):
    predictor = types.SimpleNamespace(config=types.SimpleNamespace(keep=keep, target_tag=""))
    sentences = sentences_for(Run.load(run), predictor)
    assert any("<b>{name}</b>" in sentence for sentence in sentences) == bool(keep)
