"""Gradients of our own against those that the backend derives from the written-out formula."""

import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.kernels.gradient import times_transposed, with_gradient
from tf_transformer.layers.normalization import normalize

EPSILON = 1e-6


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).normal(0.5, 2.0, shape).astype("float32")


def assert_same_gradients(function, formula, *arrays):
    """Upstream numbers are all different, so that none can be taken for another."""
    outputs = reference.array(formula(*arrays))
    np.testing.assert_allclose(reference.array(function(*arrays)), outputs, atol=1e-4)
    weights = numbers(*outputs.shape, seed=9)
    ours, derived = (
        reference.gradients(lambda *xs, of=f: ops.sum(of(*xs) * weights), *arrays)
        for f in (function, formula)
    )
    for one, other in zip(ours, derived, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_the_gradient_of_a_norm_is_that_of_its_formula(leading):
    def formula(x, gamma, beta):
        mean = ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean((x - mean) ** 2, axis=-1, keepdims=True)
        return (x - mean) / ops.sqrt(variance + EPSILON) * gamma + beta

    def ours(x, gamma, beta):
        return normalize(x, gamma, beta, EPSILON)

    assert_same_gradients(ours, formula, numbers(*leading, 7), numbers(7, seed=2), numbers(7))


@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
def test_the_gradient_of_a_product_with_a_transposed_matrix(leading):
    def formula(a, b):
        return ops.sum(a[..., :, None, :] * b[..., None, :, :], axis=-1)

    assert_same_gradients(
        times_transposed, formula, numbers(*leading, 4, 5), numbers(*leading, 6, 5, seed=2)
    )


def test_outputs_and_their_gradients_keep_their_order():
    @with_gradient
    def doubled_and_tripled(x, y):
        return (2 * x, 3 * y), lambda by_x, by_y: (2 * by_x, 3 * by_y)

    def weighed(x, y):
        doubled, tripled = doubled_and_tripled(x, y)
        return 5 * doubled + 7 * tripled

    assert reference.gradients(weighed, np.float32(1), np.float32(2)) == [10, 21]
