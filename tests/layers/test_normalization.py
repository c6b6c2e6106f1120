"""Layer normalisation against NumPy and Keras, and its precision."""

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import LayerNorm, RMSNorm

X = np.random.default_rng(1).normal(2.0, 3.0, size=(2, 3, 7)).astype("float32")


def test_layer_norm_equals_numpy_and_keras():
    layer = LayerNorm()
    layer.build(X.shape)
    theirs = keras.layers.LayerNormalization(epsilon=1e-6)
    theirs.build(X.shape)
    theirs.set_weights(reference.randomize(layer).get_weights())
    ours = ops.convert_to_numpy(layer(X))
    np.testing.assert_allclose(ours, reference.layer_norm(layer, X), atol=1e-5)
    np.testing.assert_allclose(ours, ops.convert_to_numpy(theirs(X)), atol=1e-5)


def test_rms_norm_equals_numpy_and_keras():
    layer, theirs = RMSNorm(), keras.layers.RMSNormalization(epsilon=1e-6)
    for each in (layer, theirs):
        each.build(X.shape)
    theirs.set_weights(reference.randomize(layer).get_weights())
    ours = ops.convert_to_numpy(layer(X))
    np.testing.assert_allclose(ours, reference.layer_norm(layer, X), atol=1e-5)
    np.testing.assert_allclose(ours, ops.convert_to_numpy(theirs(X)), atol=1e-5)


def test_layer_norm_of_a_constant_is_beta():
    layer = LayerNorm()
    layer.build((1, 4))
    layer.beta.assign([1.0, 2.0, 3.0, 4.0])
    output = ops.convert_to_numpy(layer(np.full((1, 4), 5.0, "float32")))
    np.testing.assert_array_equal(output, [[1, 2, 3, 4]])


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_layer_norm_computes_in_float32(dtype):
    """In bfloat16 numbers near 1000 are 4 apart, too far for their mean and variance."""
    x = ops.cast(np.array([[1000.0, 1004, 1008, 1012]], "float32"), "bfloat16")
    output = LayerNorm(dtype=dtype)(x)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    expected = np.array([-3, -1, 1, 3]) / np.sqrt(5)
    np.testing.assert_allclose(reference.array(output)[0], expected, atol=0.01)
