import math

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import (
    MultiHeadAttention,
    attention,
    attention_weights,
    causal_mask,
    lay_out,
    scaled_dot_product_attention,
)
from tf_transformer.layers.attention import attend_by_sums

# Distinct primes, so that an axis in the wrong place is caught; memory has a width of its own.
BATCH, TARGET, SOURCE, HEADS, KEY_DIM, VALUE_DIM, D_MODEL, D_MEMORY = 2, 3, 5, 7, 11, 13, 17, 19


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_mask(*shape):
    mask = np.random.default_rng(2).random(shape) < 0.5
    mask[..., 0] = True  # every query may attend to something
    return mask


def test_attention_weights_worked_by_hand():
    # (2 · ln 3) / √4 = ln 3, so the weights are 1/4 and 3/4.
    query = np.array([[[[2.0, 0.0, 0.0, 0.0]]]], "float32")
    key = np.array([[[[0.0, 1.0, 1.0, 1.0], [math.log(3), 1.0, 1.0, 1.0]]]], "float32")
    weights = ops.convert_to_numpy(attention_weights(query, key))
    np.testing.assert_allclose(weights, [[[[0.25, 0.75]]]], atol=1e-6)


@pytest.mark.parametrize("mask", [True, random_mask(BATCH, HEADS, TARGET, SOURCE)])
def test_attention_equals_numpy(mask):
    query = normal(BATCH, HEADS, TARGET, KEY_DIM, seed=1)
    key = normal(BATCH, HEADS, SOURCE, KEY_DIM, seed=2)
    value = normal(BATCH, HEADS, SOURCE, VALUE_DIM, seed=3)
    output = scaled_dot_product_attention(query, key, value, None if mask is True else mask)
    expected = reference.attention(query, key, value, mask)
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-5)


def test_masked_keys_get_a_weight_of_exactly_zero():
    mask = random_mask(BATCH, HEADS, TARGET, SOURCE)
    query, key = normal(BATCH, HEADS, TARGET, KEY_DIM), normal(BATCH, HEADS, SOURCE, KEY_DIM)
    weights = ops.convert_to_numpy(attention_weights(query, key, mask))
    assert (weights[~mask] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)


def test_query_with_nothing_to_attend_to_gets_the_mean_of_the_values():
    query, key = normal(1, 1, TARGET, KEY_DIM), normal(1, 1, SOURCE, KEY_DIM)
    value = normal(1, 1, SOURCE, VALUE_DIM)
    output = scaled_dot_product_attention(query, key, value, np.zeros((1, 1, 1, SOURCE), bool))
    expected = np.broadcast_to(value.mean(axis=2, keepdims=True), (1, 1, TARGET, VALUE_DIM))
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-6)


def test_softmax_runs_in_float32_on_bfloat16_scores(monkeypatch):
    dtypes = []
    softmax = ops.softmax

    def recording_softmax(x, axis):
        dtypes.append(keras.backend.standardize_dtype(x.dtype))
        return softmax(x, axis=axis)

    monkeypatch.setattr(ops, "softmax", recording_softmax)
    x = ops.cast(normal(1, 2, 3, 5), "bfloat16")
    weights = attention_weights(x, x)
    assert dtypes == ["float32"]
    assert keras.backend.standardize_dtype(weights.dtype) == "bfloat16"


@pytest.mark.parametrize("use_bias", [False, True])
def test_multi_head_attention_equals_numpy(use_bias):
    layer = MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM, use_bias=use_bias)
    query, value = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MEMORY)
    mask = random_mask(BATCH, 1, TARGET, SOURCE)
    layer.build(query.shape, value.shape)
    output = reference.randomize(layer)(query, value, attention_mask=mask)
    expected = [
        reference.multi_head_attention(layer, *sentence)
        for sentence in zip(query, value, mask[:, 0], strict=True)
    ]
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, rtol=1e-5, atol=1e-5)


def copy_to_keras(layer, theirs):
    """Our (D, H·K) matrices as the (D, H, K) ones of `keras.layers.MultiHeadAttention`."""
    output = (layer.output_projection.kernel, layer.output_projection.bias)
    dense = (theirs.query_dense, theirs.key_dense, theirs.value_dense, theirs.output_dense)
    pairs = [*reference.projections(layer), output]
    for (kernel, bias), part in zip(pairs, dense, strict=True):
        part.kernel.assign(ops.reshape(kernel, part.kernel.shape))
        if layer.use_bias:
            part.bias.assign(ops.reshape(bias, part.bias.shape))


@pytest.mark.parametrize("use_bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("kind", ["self", "cross"])
def test_multi_head_attention_equals_that_of_keras(kind, masked, use_bias):
    query = normal(BATCH, TARGET, D_MODEL, seed=4)
    value = query if kind == "self" else normal(BATCH, SOURCE, D_MEMORY, seed=5)
    mask = random_mask(BATCH, TARGET, value.shape[1]) if masked else None
    ours = MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM, use_bias=use_bias)
    theirs = keras.layers.MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM, use_bias=use_bias)
    ours.build(query.shape, None if kind == "self" else value.shape)
    theirs.build(query.shape, value.shape)
    copy_to_keras(reference.randomize(ours), theirs)
    mine = ours(
        query,
        None if kind == "self" else value,
        attention_mask=mask[:, None] if masked else None,
    )
    # Asked for scores too, Keras takes its einsum path: on JAX its fused one wants K = V's size.
    expected, _ = theirs(query, value, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(
        ops.convert_to_numpy(mine), ops.convert_to_numpy(expected), rtol=1e-5, atol=1e-5
    )


def test_projecting_then_attending_equals_the_call():
    query, value = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MEMORY)
    cross, own = (MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM) for _ in range(2))
    called = ops.convert_to_numpy(cross(query, value)), ops.convert_to_numpy(own(query))
    key_value = cross.project_key_value(value)
    stepped = (
        cross.attend(cross.project_query(query), key_value),
        own.attend(*own.project(query)),
    )
    assert key_value.key.shape == (BATCH, HEADS, SOURCE, KEY_DIM)
    assert key_value.value.shape == (BATCH, HEADS, SOURCE, VALUE_DIM)
    for one, other in zip(stepped, called, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), other)


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
def test_attending_by_sums_equals_attending(queries, masked):
    query, key, value = (
        normal(BATCH, HEADS, length, size, seed=i)
        for i, (length, size) in enumerate(
            [(queries, KEY_DIM), (SOURCE, KEY_DIM), (SOURCE, VALUE_DIM)]
        )
    )
    for mask in (random_mask(BATCH, 1, queries, SOURCE), random_mask(BATCH, 1, 1, SOURCE)):
        arguments = (query, key, value, mask if masked else None)
        np.testing.assert_allclose(
            ops.convert_to_numpy(attend_by_sums(*arguments)),
            ops.convert_to_numpy(scaled_dot_product_attention(*arguments)),
            atol=1e-6,
        )


@pytest.mark.parametrize(
    "mask_rows", [0, 1, TARGET], ids=["no mask", "one for all", "each its own"]
)
def test_attending_to_what_is_laid_out_equals_attending(mask_rows):
    layer = MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM)
    layer.build((None, None, D_MODEL))
    mask = random_mask(BATCH, 1, mask_rows, TARGET) if mask_rows else None
    query, key_value = layer.project(normal(BATCH, TARGET, D_MODEL))
    laid_out = lay_out(key_value)
    assert laid_out.key.shape == (BATCH * HEADS, KEY_DIM, TARGET)
    assert laid_out.value.shape == (BATCH * HEADS, TARGET, VALUE_DIM)
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer.attend_laid_out(query, laid_out, mask)),
        ops.convert_to_numpy(layer.attend(query, key_value, mask)),
        atol=1e-5,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attending_to_a_folded_memory_equals_attending(dtype):
    layer = MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM, dtype=dtype)
    layer.build((None, None, D_MODEL), (None, None, D_MODEL))
    x, memory = normal(1, TARGET, D_MODEL), normal(1, SOURCE, D_MODEL, seed=1)
    x, memory = (ops.cast(y, dtype) for y in (x, memory))
    mask = random_mask(1, 1, 1, SOURCE)
    folded = layer.fold(layer.project_key_value(memory))
    assert folded.key.shape == (D_MODEL, HEADS * SOURCE)
    assert folded.value.shape == (HEADS * SOURCE, D_MODEL)
    np.testing.assert_allclose(
        *(
            ops.convert_to_numpy(ops.cast(y, "float32"))
            for y in (layer.attend_folded(x, folded, mask), layer(x, memory, mask))
        ),
        atol=1e-5 if dtype == "float32" else 0.05,
    )


def test_a_layer_with_biases_folds_no_memory():
    layer = MultiHeadAttention(HEADS, KEY_DIM, use_bias=True, name="attention")
    layer.build((None, None, D_MODEL), (None, None, D_MODEL))
    memory = layer.project_key_value(normal(1, SOURCE, D_MODEL))
    with pytest.raises(ValueError, match="attention has biases, so its memory cannot be folded"):
        layer.fold(memory)


@pytest.mark.parametrize("limit", [0, 10**9], ids=["by products", "by sums"])
def test_attending_in_a_step_equals_attending(limit, monkeypatch):
    monkeypatch.setattr(attention, "MOST_MULTIPLICATIONS_BY_SUMS", limit)
    layer = MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM)
    layer.build((None, None, D_MODEL))
    mask = random_mask(BATCH, 1, TARGET, TARGET)
    query, key_value = layer.project(normal(BATCH, TARGET, D_MODEL))
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer.attend_in_step(query, key_value, mask)),
        ops.convert_to_numpy(layer.attend(query, key_value, mask)),
        atol=1e-5,
    )


@pytest.mark.parametrize("built", ["self", "cross"])
def test_a_layer_is_for_self_attention_or_for_cross_attention(built):
    layer = MultiHeadAttention(HEADS, KEY_DIM, name="attention")
    query, value = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MODEL)
    arguments = {"self": [query], "cross": [query, value]}
    layer(*arguments.pop(built))
    ((other, wrong),) = arguments.items()
    with pytest.raises(ValueError, match=f"built for {built}-attention and is called for {other}"):
        layer(*wrong)


def test_dropout_on_attention_weights_only_in_training():
    layer = MultiHeadAttention(HEADS, KEY_DIM, dropout_rate=0.5)
    plain = MultiHeadAttention.from_config(layer.get_config() | {"dropout_rate": 0.0})
    x = normal(BATCH, TARGET, D_MODEL)
    layer.build(x.shape)
    plain.build(x.shape)
    plain.set_weights(layer.get_weights())
    without = ops.convert_to_numpy(plain(x, attention_mask=causal_mask(TARGET)))
    inference = ops.convert_to_numpy(layer(x, attention_mask=causal_mask(TARGET)))
    training = ops.convert_to_numpy(layer(x, attention_mask=causal_mask(TARGET), training=True))
    np.testing.assert_array_equal(inference, without)
    assert np.abs(training - without).max() > 0.01


@pytest.mark.parametrize("width", [100, 60])
def test_kernels_start_within_the_bounds_of_glorot(width):
    # ±√(6 / (rows + columns)) of the matrix that is multiplied with, not of one head's share.
    layer = MultiHeadAttention(num_heads=7, key_dim=11, value_dim=13)
    value_shape = None if width == 100 else (None, None, width)
    layer.build((None, None, 100), value_shape)
    kernels = [kernel for kernel, _ in reference.projections(layer)]
    kernels.append(reference.array(layer.output_projection.kernel))
    sizes = [(100, 77), (width, 77), (width, 91), (91, 100)]
    for kernel, (rows, columns) in zip(kernels, sizes, strict=True):
        assert kernel.shape == (rows, columns)
        bound = math.sqrt(6 / (rows + columns))
        assert 0.99 * bound < np.abs(ops.convert_to_numpy(kernel)).max() <= bound
