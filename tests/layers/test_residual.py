"""The residual connection: both norms against NumPy, and where dropout acts."""

import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import Residual


def normal(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def run(layer, x, sublayer, **options):
    """A sub-layer in the residual connection."""
    return ops.convert_to_numpy(layer(x, sublayer(layer.before(x)), **options))


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_residual_equals_numpy(norm_first):
    layer = Residual(norm_first=norm_first)
    x = normal(2, 3, 5)
    layer.build(x.shape)
    output = run(reference.randomize(layer), x, lambda y: y * y + 1)
    expected = reference.residual(layer, x, lambda y: y * y + 1)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_the_norm_keeps_small_differences():
    # With ε = 1e-6 and a variance of 1e-6 the results are ±1/√2; with ε = 1e-3, ±0.03.
    x = np.array([[[1e-3, -1e-3]]], "float32")
    output = run(Residual(), x, lambda y: 0 * y)
    np.testing.assert_allclose(output, [[[0.5**0.5, -(0.5**0.5)]]], atol=1e-3)


def test_dropout_acts_on_the_output_of_the_sub_layer_only():
    layer = Residual(dropout_rate=0.5, norm_first=True)
    x = normal(2, 101, 2)
    layer.build(x.shape)
    added = run(layer, x, lambda y: 0 * y + 8, training=True) - x
    dropped, doubled = np.isclose(added, 0, atol=1e-5), np.isclose(added, 16, atol=1e-5)
    assert (dropped | doubled).all()
    assert 0.35 < dropped.mean() < 0.65
    np.testing.assert_allclose(run(layer, x, lambda y: 0 * y + 8) - x, 8, atol=1e-5)


def test_post_norm_normalises_the_sum_after_dropout():
    output = run(Residual(dropout_rate=0.5), normal(2, 3, 64), lambda y: y, training=True)
    np.testing.assert_allclose(output.mean(axis=-1), 0, atol=1e-5)
    np.testing.assert_allclose(output.std(axis=-1), 1, atol=1e-5)
