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
    rate = round(rate * 2048) / 2048
    for half in (y[..., :30], y[..., 30:]):  # the two parts of each random number
        kept = half != 0
        assert abs(kept.mean() - (1 - rate)) < 5 * np.sqrt(rate * (1 - rate) / half.size)
        expected = 1 / (1 - rate)
        np.testing.assert_allclose(half[kept], expected, rtol=1e-6 if dtype == "float32" else 5e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_parts_of_a_random_number_know_nothing_of_each_other(rate):
    y = np.asarray(Dropout(rate, seed=1)(ONES, training=True))
    first, second = (half.ravel() for half in (y[..., :30] != 0, y[..., 30:] != 0))
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(first.size)


@pytest.mark.parametrize("shape", [(2000, 1), (700, 3), (5, 4, 100)])
def test_any_shape_is_covered(shape):
    y = np.asarray(Dropout(0.5, seed=1)(np.ones(shape, "float32"), training=True))
    assert y.shape == shape
    of_columns = (y != 0).reshape(-1, shape[-1]).mean(axis=0)
    assert (of_columns > 0).all()
    assert (of_columns < 1).all()
    assert abs(of_columns.mean() - 0.5) < 2.5 / np.sqrt(y.size)


@pytest.mark.parametrize("rate", [1e-6, 1 - 1e-6])
def test_the_least_and_the_most_that_can_be_dropped(rate):
    y = np.asarray(Dropout(rate, seed=1)(np.ones((1000, 1000), "float32"), training=True))
    np.testing.assert_allclose((y == 0).mean(), 1 / 2048 if rate < 0.5 else 2047 / 2048, rtol=0.2)
    np.testing.assert_allclose(y.mean(), 1, rtol=0.2)


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
