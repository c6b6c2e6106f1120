import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import Residual


def normal(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_residual_equals_numpy(norm_first):
    layer = Residual(norm_first=norm_first)
    x = normal(2, 3, 5)
    layer.build(x.shape)
    output = reference.randomize(layer)(x, sublayer=lambda y: y * y + 1)
    expected = reference.residual(layer, x, lambda y: y * y + 1)
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-5)


def test_small_differences_survive_the_norm():
    # ε of 1e-6 beside a variance of 1e-6 makes 1/√2 of the unit variance; 1e-3 would make 0.03.
    x = np.array([[[1e-3, -1e-3]]], "float32")
    output = ops.convert_to_numpy(Residual()(x, sublayer=lambda y: 0 * y))
    np.testing.assert_allclose(output, [[[0.5**0.5, -(0.5**0.5)]]], atol=1e-3)


def test_dropout_hits_the_sublayer_and_not_the_residual_path():
    layer = Residual(dropout_rate=0.5, norm_first=True)
    x = normal(2, 101, 2)
    added = ops.convert_to_numpy(layer(x, sublayer=lambda y: 0 * y + 8, training=True)) - x
    dropped, doubled = np.isclose(added, 0, atol=1e-5), np.isclose(added, 16, atol=1e-5)
    assert (dropped | doubled).all()
    assert 0.35 < dropped.mean() < 0.65
    inference = ops.convert_to_numpy(layer(x, sublayer=lambda y: 0 * y + 8))
    np.testing.assert_allclose(inference - x, 8, atol=1e-5)


def test_post_norm_normalises_the_sum_after_dropout():
    layer = Residual(dropout_rate=0.5)
    output = ops.convert_to_numpy(layer(normal(2, 3, 64), sublayer=lambda y: y, training=True))
    np.testing.assert_allclose(output.mean(axis=-1), 0, atol=1e-5)
    np.testing.assert_allclose(output.std(axis=-1), 1, atol=1e-5)
