"""The label-smoothed loss against hand-worked values and a NumPy oracle with one-hot labels."""

import keras
import numpy as np
import pytest
import reference
from keras import ops
from reference import gradients

from tf_transformer import losses as loss


def token_losses(labels, logits, *options, **more):
    """The losses of given logits: of states whose products with the embeddings they are."""
    embeddings = np.eye(logits.shape[-1], dtype="float32")
    return loss.token_losses(labels, logits, embeddings, *options, **more)


def oracle(labels, logits, epsilon, pad_id=0):
    """(loss, gradient of it): the smoothed distribution written out, in float64."""
    logits = np.asarray(logits, np.float64)
    size = logits.shape[-1]
    shifted = logits - logits.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    wanted = (1 - epsilon) * np.eye(size)[labels] + epsilon / size
    real = (labels != pad_id)[..., None]
    return -(wanted * log_p * real).sum(), (np.exp(log_p) - wanted) * real


@pytest.fixture
def batch():
    """Labels (3, 5), a third of them padding, and logits over 7 tokens."""
    rng = np.random.default_rng(1)
    labels = rng.integers(1, 7, (3, 5)).astype("int32")
    labels[0, 3:] = labels[1, 2:] = 0
    return labels, rng.normal(0, 3, (3, 5, 7)).astype("float32")


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_equal_logits_cost_ln_v_whatever_the_smoothing(epsilon):
    """By hand: every token has probability 1/4, so each of two tokens costs ln 4."""
    losses = token_losses(np.int32([[1, 3, 0]]), np.zeros((1, 3, 4), "float32"), epsilon)
    np.testing.assert_allclose(losses.loss, 2 * np.log(4), rtol=1e-6)
    np.testing.assert_allclose(losses.nll, 2 * np.log(4), rtol=1e-6)
    assert float(losses.tokens) == 2


def test_smoothing_by_hand():
    """Logits (0, ln 3) are probabilities (1/4, 3/4); ε = 0.2 wants (0.1, 0.9) of label 1."""
    losses = token_losses(np.int32([[1]]), np.float32([[[0, np.log(3)]]]), 0.2)
    np.testing.assert_allclose(losses.loss, -0.9 * np.log(3 / 4) - 0.1 * np.log(1 / 4), rtol=1e-6)
    np.testing.assert_allclose(losses.nll, -np.log(3 / 4), rtol=1e-6)
    assert float(losses.correct) == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_loss_and_gradient_are_those_of_the_written_out_distribution(batch, epsilon):
    labels, logits = batch
    expected, expected_gradient = oracle(labels, logits, epsilon)
    losses = token_losses(labels, logits, epsilon)
    np.testing.assert_allclose(losses.loss, expected, rtol=1e-5)
    np.testing.assert_allclose(losses.nll, oracle(labels, logits, 0.0)[0], rtol=1e-5)
    (found,) = gradients(lambda x: token_losses(labels, x, epsilon).loss, logits)
    np.testing.assert_allclose(found, expected_gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_gradients_go_through_the_products(batch, epsilon, dtype, tolerance):
    """Against the oracle's gradient of the logits, times embeddings and states."""
    labels, _ = batch
    rng = np.random.default_rng(2)
    states, embeddings = (  # exact in bfloat16
        np.float32(ops.cast(ops.cast(rng.normal(size=size), "bfloat16"), "float32"))
        for size in ((3, 5, 11), (7, 11))
    )
    expected, by_logits = oracle(labels, states @ embeddings.T, epsilon)

    def of(states, embeddings):
        states = ops.cast(states, dtype)
        return loss.token_losses(labels, states, embeddings, epsilon).loss

    np.testing.assert_allclose(of(states, embeddings), expected, rtol=max(tolerance, 1e-5))
    found = reference.gradients(of, states, embeddings)
    wanted = by_logits @ embeddings, np.einsum("btv,btd->vd", by_logits, states)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance * 10, atol=tolerance * 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_what_little_a_label_has_left_to_learn_is_not_rounded_away(dtype):
    """By hand: logits (0, 10) leave 4.5e-5 of label 1, where half precision rounds p to 1."""
    embeddings = np.float32([[0], [1]])

    def of(states):
        return loss.token_losses(np.int32([[1]]), ops.cast(states, dtype), embeddings).loss

    (found,) = gradients(of, np.float32([[[10]]]))
    np.testing.assert_allclose(found, -1 / (1 + np.exp(10)), rtol=1e-2)


def test_gradient_scales_with_what_is_upstream(batch):
    labels, logits = batch
    expected = oracle(labels, logits, 0.1)[1] * 2.5
    (found,) = gradients(lambda x: 2.5 * token_losses(labels, x, 0.1).loss, logits)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_gradient_is_the_finite_difference(batch):
    """Central differences with h = 1/64 of the package's own loss."""
    labels, logits = batch
    (found,) = gradients(lambda x: token_losses(labels, x, 0.1).loss, logits)
    for place in [(0, 0, 0), (0, 0, labels[0, 0]), (2, 4, 6), (1, 3, 2)]:
        nudge = np.zeros_like(logits)
        nudge[place] = 1 / 64
        above, below = (float(token_losses(labels, logits + n, 0.1).loss) for n in (nudge, -nudge))
        np.testing.assert_allclose((above - below) * 32, found[place], atol=2e-3)


def test_padding_does_not_count(batch):
    labels, logits = batch
    padding = labels == 0
    changed = np.where(padding[..., None], logits[..., ::-1] * 100, logits)
    for one, other in zip(
        token_losses(labels, logits, 0.1), token_losses(labels, changed, 0.1), strict=True
    ):
        assert float(one) == float(other)
    (found,) = gradients(lambda x: token_losses(labels, x, 0.1).loss, logits)
    assert not found[padding].any()
    assert found[~padding].any(axis=-1).all()


def test_another_padding_id():
    """With padding 3, label 0 counts and label 3 does not."""
    losses = token_losses(np.int32([[0, 3]]), np.zeros((1, 2, 4), "float32"), pad_id=3)
    np.testing.assert_allclose(losses.loss, np.log(4), rtol=1e-6)
    assert float(losses.tokens) == 1


def test_sums_of_parts_are_sums_of_the_whole(batch):
    labels, logits = batch
    whole = token_losses(labels, logits, 0.1)
    parts = [token_losses(labels[[row]], logits[[row]], 0.1) for row in range(3)]
    for name in whole._fields:
        total = sum(float(getattr(part, name)) for part in parts)
        np.testing.assert_allclose(float(getattr(whole, name)), total, rtol=1e-5)


def test_correct_counts_labels_with_the_largest_logit(batch):
    labels, logits = batch
    expected = ((logits.argmax(-1) == labels) & (labels != 0)).sum()
    assert float(token_losses(labels, logits).correct) == expected
    best = np.eye(7, dtype="float32")[labels]
    assert float(token_losses(labels, best).correct) == (labels != 0).sum()


def test_half_precision_logits_are_summed_in_float32():
    """300 tokens at ln 4: a bfloat16 sum would stop growing at 256 of them."""
    logits = ops.zeros((1, 300, 4), "bfloat16")
    losses = token_losses(np.ones((1, 300), "int32"), logits, 0.1)
    assert {keras.backend.standardize_dtype(value.dtype) for value in losses} == {"float32"}
    np.testing.assert_allclose(losses.loss, 300 * np.log(4), rtol=1e-5)
    assert float(losses.tokens) == 300


def test_huge_logits_stay_finite():
    """By hand: the label is 1e4 below the other token, so it costs 1e4, and the gradient is 1."""
    logits = np.float32([[[1e4, 0.0]]])
    np.testing.assert_allclose(token_losses(np.int32([[1]]), logits).loss, 1e4, rtol=1e-6)
    (found,) = gradients(lambda x: token_losses(np.int32([[1]]), x).loss, logits)
    np.testing.assert_allclose(found, [[[1, -1]]], rtol=1e-6)


@pytest.mark.parametrize("below", [60.0, 68.0, 70.0, 80.0, 95.0])
def test_labels_next_to_impossible_have_their_losses(below):
    """On both sides of the least probability that is looked at."""
    label, logits = np.int32([[1]]), np.float32([[[0, -below, -1, -5]]])
    for epsilon in (0.0, 0.1):
        losses = token_losses(label, logits, epsilon)
        np.testing.assert_allclose(losses.loss, oracle(label, logits, epsilon)[0], rtol=0.01)
        np.testing.assert_allclose(losses.nll, oracle(label, logits, 0.0)[0], rtol=0.01)
