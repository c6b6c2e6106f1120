"""The comparison of a predictor in int8 with the same predictor in float32."""

import numpy as np
import pytest

from tf_transformer.export import check_int8
from tf_transformer.inference.translator import Translator

TEXTS = ["seven hundred", "twenty-one", "", "nine hundred and ninety-nine thousand"]


@pytest.fixture(scope="module")
def full(run):
    return Translator.from_run(run, beam_size=2, num_hypotheses=2)


@pytest.fixture(scope="module")
def cases(full):
    return full.signatures(TEXTS)


def changed(run, factor):
    """The predictor with random changes of its weights, relative to their sizes."""
    other = Translator.from_run(run, beam_size=2, num_hypotheses=2)
    rng = np.random.default_rng(0)
    for weight in other.model.weights:
        values = np.asarray(weight.value)
        weight.assign(values + factor * values.std() * rng.normal(size=values.shape))
    return other


def test_a_model_in_int8_agrees(full, cases, monkeypatch):
    monkeypatch.setattr("tf_transformer.layers.int8.SMALLEST_INT8_MATRIX", 1)
    small = full.with_dtype("int8")
    agreement = check_int8.check(cases, small.signatures(TEXTS), small)
    assert 0 < agreement.change < check_int8.MAX_CHANGE
    assert "int8 changes log-probabilities by" in str(agreement)


def test_a_model_agrees_with_itself(full, cases):
    assert check_int8.compare(cases, cases, full) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "agreement", [(0.2, 1.0, 1.0), (0.0, 0.6, 1.0), (0.0, 1.0, 1.2), (float("nan"), 1.0, 1.0)]
)
def test_a_model_that_changes_more_is_refused(full, monkeypatch, agreement):
    monkeypatch.setattr(check_int8, "compare", lambda *_: check_int8.Agreement(*agreement))
    with pytest.raises(RuntimeError, match=r"does not keep its quality in int8.*Export it with"):
        check_int8.check({}, {}, full)


@pytest.mark.slow
def test_other_weights_change_scores_and_predictions(cases, run):
    other = changed(run, 1.0)
    change, kept, _ = check_int8.compare(cases, other.signatures(TEXTS), other)
    assert change > check_int8.MAX_CHANGE
    assert kept < 1
