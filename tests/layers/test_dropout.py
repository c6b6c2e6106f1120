"""The tuned dropout: rates between multiples of 1/256, independent bytes, any shape.

`kernels/test_pairs.py` has the properties that the plain form shares.
"""

import numpy as np
import pytest
from keras import ops

from tf_transformer.layers import Dropout

ONES = np.ones((40, 50, 60), "float32")


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_call_has_a_rate_next_to_the_given_one_and_scales_by_its_own(rate, dtype):
    """The rate of a call is one of the two multiples of 1/256 next to the given rate."""
    layer = Dropout(rate, seed=1, dtype=dtype)
    tolerance = 1e-6 if dtype == "float32" else 5e-3
    for _ in range(3):
        y = ops.convert_to_numpy(ops.cast(layer(ONES, training=True), "float32"))
        kept = y != 0
        error = 5 * np.sqrt(rate * (1 - rate) / kept.size)
        assert any(
            abs(1 - of_call - kept.mean()) < error
            and np.allclose(y[kept], 1 / (1 - of_call), rtol=tolerance, atol=0)
            for of_call in (np.floor(rate * 256) / 256, np.ceil(rate * 256) / 256)
        )


@pytest.mark.parametrize("rate", [0.1, 0.002, 0.99])
def test_the_mean_rate_of_many_calls_is_the_given_rate(rate):
    """256 · 0.1 = 25.6: of five calls three drop 26/256 and two drop 25/256."""
    layer = Dropout(rate, seed=1)
    x = np.ones((50, 100), "float32")
    calls = [np.asarray(layer(x, training=True)) for _ in range(400)]
    dropped = np.mean([(y == 0).mean() for y in calls])
    error = np.sqrt(rate * (1 - rate) / (400 * x.size)) + 1 / 512 / np.sqrt(400)
    assert abs(dropped - rate) < 4 * error
    assert abs(np.mean(calls) - 1) < 4 * error / (1 - rate)


def test_rates_above_255_of_256_become_that_rate():
    y = np.asarray(Dropout(1 - 1e-6, seed=1)(np.ones((1000, 1000), "float32"), training=True))
    np.testing.assert_allclose((y == 0).mean(), 255 / 256, rtol=1e-3)
    assert y.max() == 256


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_bytes_of_a_random_number_are_independent(rate):
    y = np.asarray(Dropout(rate, seed=1)(ONES, training=True)).ravel()
    numbers = (y != 0).reshape(-1, 4)
    correlations = np.corrcoef(numbers.T)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(len(numbers))


@pytest.mark.parametrize("shape", [(2000, 1), (700, 3), (5, 4, 100)])
def test_every_column_of_any_shape_is_dropped_at_the_rate(shape):
    y = np.asarray(Dropout(0.5, seed=1)(np.ones(shape, "float32"), training=True))
    assert y.shape == shape
    of_columns = (y != 0).reshape(-1, shape[-1]).mean(axis=0)
    assert (of_columns > 0).all()
    assert (of_columns < 1).all()
    assert abs(of_columns.mean() - 0.5) < 2.5 / np.sqrt(y.size)


@pytest.mark.parametrize("training", [False, None])
def test_nothing_is_dropped_outside_training(training):
    np.testing.assert_array_equal(Dropout(0.5)(ONES, training=training), ONES)


def test_noise_depends_on_the_seed_and_on_the_number_of_the_call():
    layer, same, other = Dropout(0.5, seed=1), Dropout(0.5, seed=1), Dropout(0.5, seed=2)
    first, second = (np.asarray(layer(ONES, training=True)) for _ in range(2))
    assert 0.4 < (first != second).mean() < 0.6
    np.testing.assert_array_equal(first, same(ONES, training=True))
    assert 0.4 < (first != np.asarray(other(ONES, training=True))).mean() < 0.6
