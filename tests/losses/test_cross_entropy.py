"""The label-smoothed loss against values by hand and a NumPy oracle with one-hot labels.

Every test runs with the plain and with the tuned cross-entropy.
"""

import keras
import numpy as np
import pytest
from keras import ops
from reference import gradients

from tf_transformer import kernels
from tf_transformer.losses import cross_entropy as losses


@pytest.fixture(autouse=True, params=["plain", "tuned"])
def kernel_set(request):
    with kernels.use(kernels.SETS[request.param]):
        yield


def losses_of_logits(labels, logits, *options, **more):
    """The losses of given logits: with the identity as embeddings, states are the logits."""
    embeddings = np.eye(logits.shape[-1], dtype="float32")
    return losses.token_losses(labels, logits, embeddings, *options, **more)


def oracle(labels, logits, epsilon, pad_id=0):
    """The loss by its definition and its gradient by the logits, in float64."""
    logits = np.asarray(logits, np.float64)
    size = logits.shape[-1]
    shifted = logits - logits.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    smoothed = (1 - epsilon) * np.eye(size)[labels] + epsilon / size
    real = (labels != pad_id)[..., None]
    return -(smoothed * log_p * real).sum(), (np.exp(log_p) - smoothed) * real


@pytest.fixture
def batch():
    """Labels (3, 5), a third of them padding, and logits over 7 tokens."""
    rng = np.random.default_rng(1)
    labels = rng.integers(1, 7, (3, 5)).astype("int32")
    labels[0, 3:] = labels[1, 2:] = 0
    return labels, rng.normal(0, 3, (3, 5, 7)).astype("float32")


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_loss_of_equal_logits_is_ln_v_for_every_smoothing(epsilon):
    """By hand: every token has probability 1/4, so the loss of each of two tokens is ln 4."""
    found = losses_of_logits(np.int32([[1, 3, 0]]), np.zeros((1, 3, 4), "float32"), epsilon)
    np.testing.assert_allclose(found.loss, 2 * np.log(4), rtol=1e-6)
    np.testing.assert_allclose(found.nll, 2 * np.log(4), rtol=1e-6)
    assert float(found.tokens) == 2


def test_smoothing_by_hand():
    """Logits (0, ln 3) are probabilities (1/4, 3/4); with ε = 0.2, label 1 is (0.1, 0.9)."""
    found = losses_of_logits(np.int32([[1]]), np.float32([[[0, np.log(3)]]]), 0.2)
    np.testing.assert_allclose(found.loss, -0.9 * np.log(3 / 4) - 0.1 * np.log(1 / 4), rtol=1e-6)
    np.testing.assert_allclose(found.nll, -np.log(3 / 4), rtol=1e-6)
    assert float(found.correct) == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_loss_and_gradient_equal_their_definition(batch, epsilon):
    labels, logits = batch
    expected, expected_gradient = oracle(labels, logits, epsilon)
    found = losses_of_logits(labels, logits, epsilon)
    np.testing.assert_allclose(found.loss, expected, rtol=1e-5)
    np.testing.assert_allclose(found.nll, oracle(labels, logits, 0.0)[0], rtol=1e-5)
    (gradient,) = gradients(lambda x: losses_of_logits(labels, x, epsilon).loss, logits)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_gradients_reach_states_and_embeddings(batch, epsilon, dtype, tolerance):
    """The oracle's gradient by the logits, times embeddings and states."""
    labels, _ = batch
    rng = np.random.default_rng(2)
    states, embeddings = (  # exact in bfloat16
        np.float32(ops.cast(ops.cast(rng.normal(size=size), "bfloat16"), "float32"))
        for size in ((3, 5, 11), (7, 11))
    )
    expected, by_logits = oracle(labels, states @ embeddings.T, epsilon)

    def loss(states, embeddings):
        states = ops.cast(states, dtype)
        return losses.token_losses(labels, states, embeddings, epsilon).loss

    np.testing.assert_allclose(loss(states, embeddings), expected, rtol=max(tolerance, 1e-5))
    found = gradients(loss, states, embeddings)
    expected = by_logits @ embeddings, np.einsum("btv,btd->vd", by_logits, states)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance * 10, atol=tolerance * 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_small_gradient_of_a_likely_label_is_not_rounded_to_zero(dtype):
    """By hand: logits (0, 10) give 1 - p = 4.5e-5 for label 1; half precision rounds p to 1."""
    embeddings = np.float32([[0], [1]])

    def loss(states):
        return losses.token_losses(np.int32([[1]]), ops.cast(states, dtype), embeddings).loss

    (gradient,) = gradients(loss, np.float32([[[10]]]))
    np.testing.assert_allclose(gradient, -1 / (1 + np.exp(10)), rtol=1e-2)


def test_gradient_scales_with_the_upstream_gradient(batch):
    labels, logits = batch
    expected = oracle(labels, logits, 0.1)[1] * 2.5
    (gradient,) = gradients(lambda x: 2.5 * losses_of_logits(labels, x, 0.1).loss, logits)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


def test_gradient_equals_finite_differences(batch):
    """Central differences of the package's own loss, with h = 1/64."""
    labels, logits = batch
    (gradient,) = gradients(lambda x: losses_of_logits(labels, x, 0.1).loss, logits)
    for place in [(0, 0, 0), (0, 0, labels[0, 0]), (2, 4, 6), (1, 3, 2)]:
        step = np.zeros_like(logits)
        step[place] = 1 / 64
        above, below = (
            float(losses_of_logits(labels, logits + h, 0.1).loss) for h in (step, -step)
        )
        np.testing.assert_allclose((above - below) * 32, gradient[place], atol=2e-3)


def test_padding_does_not_count(batch):
    labels, logits = batch
    padding = labels == 0
    changed = np.where(padding[..., None], logits[..., ::-1] * 100, logits)
    for one, other in zip(
        losses_of_logits(labels, logits, 0.1), losses_of_logits(labels, changed, 0.1), strict=True
    ):
        assert float(one) == float(other)
    (gradient,) = gradients(lambda x: losses_of_logits(labels, x, 0.1).loss, logits)
    assert not gradient[padding].any()
    assert gradient[~padding].any(axis=-1).all()


def test_padding_id_is_an_option():
    """With padding 3, label 0 counts and label 3 does not."""
    found = losses_of_logits(np.int32([[0, 3]]), np.zeros((1, 2, 4), "float32"), pad_id=3)
    np.testing.assert_allclose(found.loss, np.log(4), rtol=1e-6)
    assert float(found.tokens) == 1


def test_losses_of_parts_add_up_to_those_of_the_whole(batch):
    labels, logits = batch
    whole = losses_of_logits(labels, logits, 0.1)
    parts = [losses_of_logits(labels[[row]], logits[[row]], 0.1) for row in range(3)]
    for name in whole._fields:
        total = sum(float(getattr(part, name)) for part in parts)
        np.testing.assert_allclose(float(getattr(whole, name)), total, rtol=1e-5)


def test_correct_counts_labels_with_the_largest_logit(batch):
    labels, logits = batch
    expected = ((logits.argmax(-1) == labels) & (labels != 0)).sum()
    assert float(losses_of_logits(labels, logits).correct) == expected
    best = np.eye(7, dtype="float32")[labels]
    assert float(losses_of_logits(labels, best).correct) == (labels != 0).sum()


def test_losses_of_half_precision_logits_are_summed_in_float32():
    """300 tokens at ln 4: a count in bfloat16 would stop at 256."""
    logits = ops.zeros((1, 300, 4), "bfloat16")
    found = losses_of_logits(np.ones((1, 300), "int32"), logits, 0.1)
    assert {keras.backend.standardize_dtype(value.dtype) for value in found} == {"float32"}
    np.testing.assert_allclose(found.loss, 300 * np.log(4), rtol=1e-5)
    assert float(found.tokens) == 300


def test_huge_logits_stay_finite():
    """By hand: the label's logit is 1e4 lower, so the loss is 1e4 and the gradient ±1."""
    logits = np.float32([[[1e4, 0.0]]])
    np.testing.assert_allclose(losses_of_logits(np.int32([[1]]), logits).loss, 1e4, rtol=1e-6)
    (gradient,) = gradients(lambda x: losses_of_logits(np.int32([[1]]), x).loss, logits)
    np.testing.assert_allclose(gradient, [[[1, -1]]], rtol=1e-6)


@pytest.mark.parametrize("below", [60.0, 68.0, 70.0, 80.0, 95.0])
def test_losses_of_nearly_impossible_labels(below):
    """With probabilities around that at which float32 underflows."""
    label, logits = np.int32([[1]]), np.float32([[[0, -below, -1, -5]]])
    for epsilon in (0.0, 0.1):
        found = losses_of_logits(label, logits, epsilon)
        np.testing.assert_allclose(found.loss, oracle(label, logits, epsilon)[0], rtol=0.01)
        np.testing.assert_allclose(found.nll, oracle(label, logits, 0.0)[0], rtol=0.01)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_losses_of_labels_equal_the_definition(epsilon):
    """Label n of a text is number n + 1; 0 is a row that does not count."""
    labels = np.int32([[1], [0], [4], [2]])
    logits = np.random.default_rng(1).normal(0, 3, (4, 4)).astype("float32")
    found = losses.label_losses(labels, logits, epsilon)
    real = labels[:, 0] > 0
    targets = labels[real, 0] - 1
    expected, _ = oracle(targets, logits[real], epsilon, pad_id=-1)
    without, _ = oracle(targets, logits[real], 0.0, pad_id=-1)
    right = (logits[real].argmax(axis=1) == targets).sum()
    values = [ops.convert_to_numpy(each) for each in found]
    np.testing.assert_allclose(values, [expected, without, right, 3], rtol=1e-5)
    nothing = losses.label_losses(labels * 0, logits, epsilon)
    assert [float(each) for each in nothing] == [0.0] * 4
