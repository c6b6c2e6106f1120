"""The feed-forward network by hand and against NumPy."""

import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import FeedForward, GatedFeedForward
from tf_transformer.layers.variants import FEED_FORWARD


def test_feed_forward_worked_by_hand():
    layer = FeedForward(d_ff=2)
    layer.build((None, None, 1))
    layer.hidden.kernel.assign([[1.0, -1.0]])
    layer.hidden.bias.assign([0.0, 1.0])
    layer.output_projection.kernel.assign([[10.0], [100.0]])
    layer.output_projection.bias.assign([5.0])
    # 3: max(0, 3) · 10 + max(0, 1 - 3) · 100 + 5; -3: 0 · 10 + (1 + 3) · 100 + 5
    output = layer(np.array([[[3.0], [-3.0]]], "float32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(output), [[[35], [405]]])


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_feed_forward_equals_numpy(activation):
    layer = FEED_FORWARD[activation](d_ff=11, activation=activation)
    x = np.random.default_rng(1).normal(size=(2, 3, 5)).astype("float32")
    layer.build(x.shape)
    output = ops.convert_to_numpy(reference.randomize(layer)(x))
    np.testing.assert_allclose(output, reference.feed_forward(layer, x), atol=1e-5)


def test_a_gate_and_its_factor_start_as_two_matrices():
    """Glorot's limit √(6 / (fan in + fan out)) is that of each (5, 500) matrix alone."""
    layer = GatedFeedForward(d_ff=500)
    layer.build((None, None, 5))
    limit = np.sqrt(6 / (5 + 500))
    for matrix in np.split(ops.convert_to_numpy(layer.hidden.kernel), 2, axis=1):
        assert 0.99 * limit < np.abs(matrix).max() <= limit


def test_dropout_on_the_hidden_layer_only_in_training():
    layer = FeedForward(d_ff=101, dropout_rate=0.5)
    layer.build((None, None, 1))
    layer.hidden.bias.assign(np.ones(101))
    layer.output_projection.kernel.assign(np.ones((101, 1)))
    x = np.zeros((1, 1, 1), "float32")
    assert float(layer(x)[0, 0, 0]) == 101  # 101 ones
    kept = float(layer(x, training=True)[0, 0, 0]) / 2
    assert kept == round(kept)  # each unit is dropped or doubled
    assert 20 < kept < 81
