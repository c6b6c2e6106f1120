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
    """A call's own rate is one of the multiples of 1/256 around the rate."""
    layer = Dropout(rate, seed=1, dtype=dtype)
    around = {np.floor(rate * 256) / 256, np.ceil(rate * 256) / 256}
    for _ in range(3):
        y = ops.convert_to_numpy(ops.cast(layer(ONES, training=True), "float32"))
        kept = y != 0
        of_call = min(around, key=lambda each: abs(1 - each - kept.mean()))
        assert abs(1 - of_call - kept.mean()) < 5 * np.sqrt(rate * (1 - rate) / kept.size)
        tolerance = 1e-6 if dtype == "float32" else 5e-3
        np.testing.assert_allclose(y[kept], 1 / (1 - of_call), rtol=tolerance)


@pytest.mark.parametrize("rate", [0.1, 0.002, 0.99])
def test_over_many_calls_the_rate_is_the_rate_and_the_mean_stays(rate):
    """256 · 0.1 = 25.6, so three calls in five drop 26/256 and two 25/256."""
    layer = Dropout(rate, seed=1)
    x = np.ones((50, 100), "float32")
    calls = [np.asarray(layer(x, training=True)) for _ in range(400)]
    dropped = np.mean([(y == 0).mean() for y in calls])
    error = np.sqrt(rate * (1 - rate) / (400 * x.size)) + 1 / 512 / np.sqrt(400)
    assert abs(dropped - rate) < 4 * error
    assert abs(np.mean(calls) - 1) < 4 * error / (1 - rate)


def test_the_most_that_can_be_dropped():
    y = np.asarray(Dropout(1 - 1e-6, seed=1)(np.ones((1000, 1000), "float32"), training=True))
    np.testing.assert_allclose((y == 0).mean(), 255 / 256, rtol=1e-3)
    assert y.max() == 256


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_bytes_of_a_random_number_know_nothing_of_each_other(rate):
    y = np.asarray(Dropout(rate, seed=1)(ONES, training=True)).ravel()
    numbers = (y != 0).reshape(-1, 4)
    between = np.corrcoef(numbers.T)[np.triu_indices(4, 1)]
    assert np.abs(between).max() < 5 / np.sqrt(len(numbers))


@pytest.mark.parametrize("shape", [(2000, 1), (700, 3), (5, 4, 100)])
def test_any_shape_is_covered(shape):
    y = np.asarray(Dropout(0.5, seed=1)(np.ones(shape, "float32"), training=True))
    assert y.shape == shape
    of_columns = (y != 0).reshape(-1, shape[-1]).mean(axis=0)
    assert (of_columns > 0).all()
    assert (of_columns < 1).all()
    assert abs(of_columns.mean() - 0.5) < 2.5 / np.sqrt(y.size)


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
