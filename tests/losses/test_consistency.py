"""Losses with two predictions against NumPy, and against the cross-entropy alone."""

from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops

from tf_transformer.config import ModelConfig, TrainConfig
from tf_transformer.losses.choice import make_loss
from tf_transformer.losses.consistency import RDrop, SimCut
from tf_transformer.losses.cross_entropy import HIDDEN_ID, CrossEntropy, WordDropout
from tf_transformer.models.transformer import Transformer

LABELS = np.int32([[1, 3, 0], [2, 0, 0]])
LOSSES = [RDrop(0.1, 5.0), SimCut(0.1, 3.0, WordDropout(0.5))]


class Repeats:
    """A model whose states are given, one tensor for each call; its embeddings are the identity."""

    def __init__(self, *states):
        self._states = iter(states)

    def run(self, inputs, training):
        return SimpleNamespace(states=ops.convert_to_tensor(next(self._states)))

    def factors(self, states):
        return states, np.eye(4, dtype="float32")


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def kl(log_p, log_q):
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda each: type(each).__name__)
def test_the_loss_is_that_of_the_equation(loss):
    """Of three real tokens of five; V is 4."""
    p, q = np.random.default_rng(1).normal(size=(2, 2, 3, 4)).astype("float32")
    losses_of_batch = loss.losses(Repeats(p, q), np.ones_like(LABELS), LABELS, training=True)
    log_p, log_q = log_softmax(p), log_softmax(q)
    target = 0.9 * np.eye(4)[LABELS] + 0.1 / 4
    of_p, of_q = (-(target * each).sum(-1) for each in (log_p, log_q))
    if isinstance(loss, RDrop):
        losses = (of_p + of_q) / 2 + 5.0 / 4 * (kl(log_p, log_q) + kl(log_q, log_p))
    else:
        losses = of_p + 3.0 * kl(log_p, log_q)
    real = LABELS > 0
    np.testing.assert_allclose(losses_of_batch.loss, (losses * real).sum(), rtol=1e-5)
    nll = -np.take_along_axis(log_p, LABELS[..., None], -1)[..., 0]
    np.testing.assert_allclose(losses_of_batch.nll, (nll * real).sum(), rtol=1e-5)
    assert float(losses_of_batch.tokens) == 3


@pytest.mark.parametrize("loss", [RDrop(0.1, 5.0), SimCut(0.1, 3.0, WordDropout(0.0))])
@pytest.mark.parametrize("training", [True, False])
def test_two_equal_predictions_have_the_cross_entropy_alone(loss, training):
    """Without dropout and hidden tokens; outside training always."""
    model = Transformer(9, ModelConfig(num_layers=1, d_model=8, dropout_rate=0.0))
    model.build()
    inputs = np.int32([[5, 6, 2], [7, 2, 0]]), np.int32([[1, 1, 3], [1, 2, 0]])
    losses_of_batch = loss.losses(model, inputs, LABELS, training)
    expected = CrossEntropy(0.1).losses(model, inputs, LABELS, training)
    np.testing.assert_allclose(losses_of_batch, expected, rtol=1e-5)


def test_word_dropout_hides_a_share_of_the_real_tokens_on_both_sides():
    source = np.tile(np.int32([5, 6, 7, 0]), (4000, 1))
    for ids in WordDropout(0.25, seed=1)((source, source + 1)):
        hidden = ops.convert_to_numpy(ids) == HIDDEN_ID
        np.testing.assert_allclose(hidden[:, :3].mean(), 0.25, atol=0.02)
    first, second = (WordDropout(0.5, seed=1)(source) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not ops.convert_to_numpy(first == HIDDEN_ID)[:, 3].any()


class HidesAll(WordDropout):
    def _hide(self, ids):
        return ids * 0 + HIDDEN_ID


class Reads:
    """A model that keeps its inputs; its states are zeros."""

    def __init__(self):
        self.inputs = []

    def run(self, inputs, training):
        self.inputs.append(ops.convert_to_numpy(inputs))
        return SimpleNamespace(states=ops.zeros((*inputs.shape, 4)))

    def factors(self, states):
        return states, np.eye(4, dtype="float32")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("make", "hidden"),
    [
        (lambda hides: CrossEntropy(0.1, hides), [True]),
        (lambda hides: RDrop(0.1, 5.0, hides), [True, True]),
        (lambda hides: SimCut(0.1, 3.0, WordDropout(0.0), hides), [True, False]),
        (lambda hides: SimCut(0.1, 3.0, hides), [False, True]),
    ],
)
def test_word_dropout_is_for_the_inputs_of_training(make, hidden, training):
    model = Reads()
    make(HidesAll(0.5)).losses(model, LABELS, LABELS, training)
    found = [bool((inputs == HIDDEN_ID).all()) for inputs in model.inputs]
    assert found == (hidden if training else [False])


def test_options_name_the_objective():
    assert type(make_loss(TrainConfig())) is CrossEntropy
    simcut = make_loss(TrainConfig(consistency="simcut"))
    assert (type(simcut), simcut.weight, simcut.cut.rate) == (SimCut, 3.0, 0.05)
    r_drop = make_loss(TrainConfig(consistency="r_drop", label_smoothing=0.2))
    assert (type(r_drop), r_drop.weight, r_drop.label_smoothing) == (RDrop, 5.0, 0.2)
    assert make_loss(TrainConfig(word_dropout=0.2)).word_dropout.rate == 0.2
