"""Dropout: what is kept, how often, and that its gradient sees the same noise."""

import keras
import numpy as np
import pytest
from keras import ops

from tf_transformer.layers import Dropout

ONES = np.ones((40, 50, 60), "float32")


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_elements_are_dropped_at_the_rate_and_others_made_up_for_it(rate, dtype):
    y = Dropout(rate, seed=1, dtype=dtype)(ONES, training=True)
    y = ops.convert_to_numpy(ops.cast(y, "float32"))
    kept = y != 0
    deviation = np.sqrt(rate * (1 - rate) / y.size)
    assert abs(kept.mean() - (1 - rate)) < 5 * deviation
    np.testing.assert_allclose(y[kept], 1 / (1 - rate), rtol=1e-6 if dtype == "float32" else 5e-3)


@pytest.mark.parametrize("training", [False, None])
def test_nothing_is_dropped_outside_training(training):
    np.testing.assert_array_equal(Dropout(0.5)(ONES, training=training), ONES)


def test_every_call_draws_anew_and_every_seed_its_own():
    layer, same, other = Dropout(0.5, seed=1), Dropout(0.5, seed=1), Dropout(0.5, seed=2)
    first, second = (np.asarray(layer(ONES, training=True)) for _ in range(2))
    assert 0.4 < (first != second).mean() < 0.6
    np.testing.assert_array_equal(first, same(ONES, training=True))
    assert 0.4 < (first != np.asarray(other(ONES, training=True))).mean() < 0.6


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="uses TensorFlow's tape")
def test_the_gradient_is_the_noise():
    import tensorflow as tf

    x = tf.constant(ONES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = Dropout(0.3, seed=1)(x, training=True)
    np.testing.assert_array_equal(tape.gradient(y, x), y)
