"""Plain attention against NumPy and values by hand; `test_pairs.py` has the tuned form."""

import math

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.kernels.attention import attention, plain_attention

# Distinct primes, so that a wrong axis causes an error.
BATCH, HEADS, TARGET, SOURCE, KEY_DIM, VALUE_DIM = 2, 7, 3, 5, 11, 13


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_mask(*shape):
    mask = np.random.default_rng(2).random(shape) < 0.5
    mask[..., 0] = True  # every query may attend to a key
    return mask


def query_key_value():
    lengths_and_sizes = [(TARGET, KEY_DIM), (SOURCE, KEY_DIM), (SOURCE, VALUE_DIM)]
    return [normal(BATCH, HEADS, *pair, seed=i) for i, pair in enumerate(lengths_and_sizes)]


def test_weights_worked_by_hand():
    # (2 · ln 3) / √4 = ln 3, so the weights are 1/4 and 3/4. A bias of ln 9 on the first key
    # makes them 3/4 and 1/4.
    query = np.array([[[[2.0, 0.0, 0.0, 0.0]]]], "float32")
    key = np.array([[[[0.0, 1.0, 1.0, 1.0], [math.log(3), 1.0, 1.0, 1.0]]]], "float32")
    bias = np.array([[[[math.log(9), 0.0]]]], "float32")
    for options, expected in (({}, [0.25, 0.75]), ({"bias": bias}, [0.75, 0.25])):
        weights = plain_attention(query, key, key, **options).weights
        np.testing.assert_allclose(reference.array(weights), [[[expected]]], atol=1e-6)


@pytest.mark.parametrize("has_bias", [False, True], ids="has_bias={}".format)
@pytest.mark.parametrize("has_mask", [False, True], ids="has_mask={}".format)
def test_attention_equals_numpy(has_mask, has_bias):
    query, key, value = query_key_value()
    mask = random_mask(BATCH, HEADS, TARGET, SOURCE) if has_mask else None
    bias = normal(1, HEADS, TARGET, SOURCE, seed=5) if has_bias else None
    heads, weights = map(reference.array, plain_attention(query, key, value, mask, bias))
    allowed = True if mask is None else mask
    expected = reference.attention_weights(query, key, allowed, 0.0 if bias is None else bias)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(heads, expected @ value, atol=1e-5)
    assert (weights[~np.broadcast_to(allowed, weights.shape)] == 0).all()


def test_dropout_applies_to_the_weights_that_multiply_the_values():
    query, key, value = query_key_value()
    heads, weights = plain_attention(query, key, value)
    half, same_weights = plain_attention(query, key, value, dropout=lambda w: 0.5 * w)
    np.testing.assert_allclose(reference.array(half), 0.5 * reference.array(heads), atol=1e-6)
    np.testing.assert_array_equal(reference.array(same_weights), reference.array(weights))


def test_a_query_with_no_allowed_key_gets_the_mean_of_the_values():
    query, key, value = query_key_value()
    heads = plain_attention(query, key, value, np.zeros((1, 1, 1, SOURCE), bool)).heads
    expected = np.broadcast_to(value.mean(axis=2, keepdims=True), heads.shape)
    np.testing.assert_allclose(reference.array(heads), expected, atol=1e-6)


@pytest.mark.parametrize("form", [plain_attention, attention])
@pytest.mark.parametrize("length", [3, 20])
def test_the_softmax_runs_in_float32_on_bfloat16_scores(form, length, monkeypatch):
    """For 3 queries the tuned form uses `exp`, for 20 queries it uses `softmax`."""
    dtypes = set()
    for name in ("softmax", "exp"):

        def recording(x, *args, original=getattr(ops, name), **options):
            dtypes.add(keras.backend.standardize_dtype(x.dtype))
            return original(x, *args, **options)

        monkeypatch.setattr(ops, name, recording)
    x = ops.cast(normal(1, 2, length, 5), "bfloat16")
    heads, weights = form(x, x, x)
    assert dtypes == {"float32"}
    for tensor in (heads, weights):
        assert keras.backend.standardize_dtype(tensor.dtype) == "bfloat16"
