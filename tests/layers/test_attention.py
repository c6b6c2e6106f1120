"""Multi-head attention against NumPy and Keras, its two steps, dropout and initial values."""

import math

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer import layers
from tf_transformer.layers import CrossAttention, KeyValue, SelfAttention, causal_mask
from tf_transformer.layers.variants import SELF_ATTENTION

# Distinct primes, so that a wrong axis causes an error; the memory has a width of its own.
BATCH, TARGET, SOURCE, HEADS, KEY_DIM, VALUE_DIM, D_MODEL, D_MEMORY = 2, 3, 5, 7, 11, 13, 17, 19

each_kind = pytest.mark.parametrize("kind", ["self", "cross"])
each_bias = pytest.mark.parametrize("use_bias", [False, True], ids=["no bias", "bias"])
each_mask = pytest.mark.parametrize("has_mask", [False, True], ids=["no mask", "mask"])


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_mask(*shape):
    mask = np.random.default_rng(2).random(shape) < 0.5
    mask[..., 0] = True  # every query may attend to a key
    return mask


def inputs_of(kind):
    """Query, and value: None for self-attention."""
    query = normal(BATCH, TARGET, D_MODEL, seed=4)
    return query, None if kind == "self" else normal(BATCH, SOURCE, D_MEMORY, seed=5)


def make_layer(query, value, **options):
    make = SelfAttention if value is None else CrossAttention
    layer = make(num_heads=HEADS, key_dim=KEY_DIM, value_dim=VALUE_DIM, **options)
    layer.build(*(x.shape for x in (query, value) if x is not None))
    return reference.randomize(layer)


def attend(layer, query, value, mask=None):
    values = [] if value is None else [value]
    return layer(query, *values, attention_mask=mask)


def mask_of(query, value, has_mask):
    keys = query if value is None else value
    return random_mask(BATCH, 1, TARGET, keys.shape[1]) if has_mask else None


@each_kind
@each_mask
@each_bias
def test_output_and_weights_equal_numpy(kind, has_mask, use_bias):
    query, value = inputs_of(kind)
    mask = mask_of(query, value, has_mask)
    layer = make_layer(query, value, use_bias=use_bias)
    attended = attend(layer, query, value, mask)
    for row in range(BATCH):
        expected, weights = reference.multi_head_attention(
            layer,
            query[row],
            (query if value is None else value)[row],
            True if mask is None else mask[row, 0],
        )
        options = {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(reference.array(attended.output)[row], expected, **options)
        np.testing.assert_allclose(reference.array(attended.weights)[row], weights, **options)


def copy_to_keras(layer, theirs):
    """Our (D, H·K) matrices as the (D, H, K) ones of `keras.layers.MultiHeadAttention`."""
    output = (layer.output_projection.kernel, layer.output_projection.bias)
    dense = (theirs.query_dense, theirs.key_dense, theirs.value_dense, theirs.output_dense)
    pairs = [*reference.projections(layer), output]
    for (kernel, bias), part in zip(pairs, dense, strict=True):
        part.kernel.assign(ops.reshape(kernel, part.kernel.shape))
        if layer.config.attention_bias:
            part.bias.assign(ops.reshape(bias, part.bias.shape))


@each_kind
@each_mask
@each_bias
def test_output_and_weights_equal_those_of_keras(kind, has_mask, use_bias):
    query, value = inputs_of(kind)
    mask = mask_of(query, value, has_mask)
    ours = make_layer(query, value, use_bias=use_bias)
    theirs = keras.layers.MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM, use_bias=use_bias)
    keys = query if value is None else value
    theirs.build(query.shape, keys.shape)
    copy_to_keras(ours, theirs)
    found = attend(ours, query, value, mask)
    expected = theirs(
        query,
        keys,
        attention_mask=None if mask is None else mask[:, 0],
        return_attention_scores=True,
    )
    for one, other in zip(found[:2], expected, strict=True):
        np.testing.assert_allclose(
            reference.array(one), reference.array(other), rtol=1e-5, atol=1e-5
        )


def test_projecting_then_attending_equals_the_call():
    query, value = inputs_of("cross")
    cross, own = make_layer(query, value), make_layer(query, None)
    key_value = cross.keys_values(value)
    own_query, own_key_value = own.project(query)
    assert key_value.key.shape == (BATCH, HEADS, SOURCE, KEY_DIM)
    assert key_value.value.shape == (BATCH, HEADS, SOURCE, VALUE_DIM)
    stepped = (
        cross.attend(cross.queries(query), key_value),
        own.attend(own_query, own_key_value),
    )
    for attended, called in zip(stepped, (cross(query, value), own(query)), strict=True):
        np.testing.assert_array_equal(*(reference.array(x.output) for x in (attended, called)))
    stored = cross(query, stored=key_value)
    np.testing.assert_array_equal(*(reference.array(x.output) for x in (stored, stepped[0])))


@each_kind
def test_the_result_contains_the_keys_and_values(kind):
    query, value = inputs_of(kind)
    layer = make_layer(query, value)
    expected = layer.project(query)[1] if value is None else layer.keys_values(value)
    found = attend(layer, query, value).stored
    assert isinstance(found, KeyValue)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(reference.array(one), reference.array(other))


def test_dropout_on_attention_weights_only_in_training():
    x = normal(BATCH, TARGET, D_MODEL)
    layer, without = make_layer(x, None, dropout_rate=0.5), make_layer(x, None)
    mask = causal_mask(TARGET)
    expected, inference, training = (
        each(x, attention_mask=mask, training=training)
        for each, training in ((without, True), (layer, False), (layer, True))
    )
    expected_output, found, dropped = (
        reference.array(each.output) for each in (expected, inference, training)
    )
    np.testing.assert_array_equal(found, expected_output)
    assert np.abs(dropped - expected_output).max() > 0.01
    # The returned weights are those before dropout.
    np.testing.assert_allclose(
        reference.array(training.weights), reference.array(expected.weights), atol=1e-6
    )


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (2, 1, 3, 5), (1, 6, 3, 5), (2, 6, 1, 5), (3, 5)])
def test_heads_of_queries_share_keys_with_masks_and_biases_of_any_shape(groups, shape):
    layer = CrossAttention(
        num_heads=6, key_dim=KEY_DIM, value_dim=VALUE_DIM, num_key_value_heads=groups
    )
    query, value = inputs_of("cross")
    layer.build(query.shape, value.shape)
    key_value, queries = layer.keys_values(value), layer.queries(query)
    assert key_value.key.shape == (BATCH, groups, SOURCE, KEY_DIM)
    mask, bias = random_mask(*shape), normal(*shape, seed=7)
    found = layer.attend(queries, key_value, mask, bias)
    key, values = (np.repeat(reference.array(x), 6 // groups, axis=1) for x in key_value)
    weights = reference.attention_weights(reference.array(queries), key, mask, bias)
    heads = (weights @ values).transpose(0, 2, 1, 3).reshape(BATCH, TARGET, -1)
    expected = reference.linear(layer.output_projection, heads)
    np.testing.assert_allclose(reference.array(found.weights), weights, atol=1e-5)
    np.testing.assert_allclose(reference.array(found.output), expected, atol=1e-5)


def test_heads_that_cannot_share_keys_are_an_error():
    with pytest.raises(ValueError, match=r"num_heads \(6\) must be a multiple of .* \(4\)"):
        SelfAttention(num_heads=6, key_dim=KEY_DIM, num_key_value_heads=4)


@pytest.mark.parametrize("groups", [7, 1])
@pytest.mark.parametrize("width", [100, 60])
def test_initial_kernels_lie_within_the_bounds_of_glorot(width, groups):
    # ±√(6 / (rows + columns)) of each matrix, not of one head's part or of the concatenation.
    make, shapes = (SelfAttention, [100]) if width == 100 else (CrossAttention, [100, width])
    layer = make(num_heads=7, key_dim=11, value_dim=13, num_key_value_heads=groups)
    layer.build(*((None, None, size) for size in shapes))
    kernels = [kernel for kernel, _ in reference.projections(layer)]
    kernels.append(reference.array(layer.output_projection.kernel))
    sizes = [(100, 77), (width, 11 * groups), (width, 13 * groups), (91, 100)]
    for kernel, (rows, columns) in zip(kernels, sizes, strict=True):
        assert kernel.shape == (rows, columns)
        bound = math.sqrt(6 / (rows + columns))
        assert 0.99 * bound < np.abs(kernel).max() <= bound


# What is no mask, and no second sequence

SELF = [kind for kind in SELF_ATTENTION.values() if "num_heads" in kind.reads]


@pytest.mark.parametrize("layer", SELF, ids=lambda layer: layer.__name__)
@pytest.mark.parametrize("is_built", [False, True])
def test_self_attention_takes_no_second_sequence(layer, is_built):
    """Not in the first call, either, which once made it another kind of layer."""
    attention, x, value = layer(num_heads=2, key_dim=4), normal(2, 3, 8), normal(2, 5, 8)
    if is_built:
        attention(x)
    with pytest.raises(ValueError, match="expected attention_mask as a bool tensor"):
        attention(x, value)
    assert attention(x).output.shape == (2, 3, 8)  # the error left no half-built layer


@pytest.mark.parametrize("is_causal", [False, True])
def test_self_attention_that_is_causal_hides_later_positions(is_causal):
    """Oracle: the first positions alone."""
    layer, x = layers.SelfAttention(num_heads=2, key_dim=4, is_causal=is_causal), normal(2, 5, 8)
    hides_nothing = np.ones((2, 1, 1, 5), bool)
    for mask in (None, hides_nothing):
        found = reference.array(layer(x, attention_mask=mask).output)[:, :3]
        expected = reference.array(layer(x[:, :3]).output)
        assert np.allclose(found, expected, atol=1e-5) == is_causal


NO_MASKS = {
    "a key as in Keras": normal(BATCH, SOURCE, D_MEMORY),
    "a float mask": random_mask(BATCH, 1, TARGET, SOURCE).astype("float32"),
    "no axis of heads": random_mask(BATCH, TARGET, SOURCE),
    "no axes of rows and heads": random_mask(TARGET, SOURCE),
    "other sizes": random_mask(BATCH, 1, 1, SOURCE + 1),
    "too many axes": random_mask(1, BATCH, HEADS, TARGET, SOURCE),
}
CALLS = {  # the layer, and the name of the mask of (3, 5) scores
    "attention": (layers.CrossAttention, "attention_mask"),
    "decoder layer": (layers.DecoderLayer, "cross_attention_mask"),
    "decoder": (layers.Decoder, "cross_attention_mask"),
}


@pytest.mark.parametrize("wrong", NO_MASKS)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_mask_is_an_error(call, wrong):
    """With as many heads as rows, (B, T, S) would broadcast as (H, T, S)."""
    make, name = CALLS[call]
    layer = make(num_heads=BATCH, key_dim=KEY_DIM)
    query, value = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MEMORY)
    message = rf"expected {name} as a bool tensor .* here \(2, 2, 3, 5\), got "
    with pytest.raises(ValueError, match=message):
        layer(query, value, **{name: NO_MASKS[wrong]})


@pytest.mark.parametrize("make", [*SELF, layers.EncoderLayer, layers.Encoder])
@pytest.mark.parametrize(
    "wrong", [normal(2, 3, 8), np.ones((2, 3, 3), bool), np.ones((3, 3), bool)]
)
def test_what_is_no_mask_of_self_attention_is_an_error(make, wrong):
    with pytest.raises(ValueError, match="expected attention_mask as a bool tensor"):
        make(num_heads=2, key_dim=4)(normal(2, 3, 8), attention_mask=wrong)


@pytest.mark.parametrize("shape", [(1, 1, 3, 5), (2, 1, 3, 1), (2, 1, 1, 5), (2, 2, 3, 5)])
@pytest.mark.parametrize("dtype", ["bool", "int32"])
def test_masks_of_zeros_and_ones_broadcast(shape, dtype):
    layer = CrossAttention(num_heads=2, key_dim=KEY_DIM)
    query, value = inputs_of("cross")
    mask = random_mask(*shape)
    expected = layer(query, value, np.broadcast_to(mask, (BATCH, 2, TARGET, SOURCE))).output
    found = layer(query, value, mask.astype(dtype)).output
    np.testing.assert_allclose(reference.array(found), reference.array(expected), atol=1e-6)
