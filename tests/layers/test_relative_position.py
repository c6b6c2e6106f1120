"""Encodings that act on scores, against the formulas of their papers and by hand."""

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import AlibiPosition, RelativePosition, RotaryPosition, T5Position
from tf_transformer.layers.later.relative_position import alibi_slopes

BATCH, HEADS, LENGTH, SIZE = 2, 3, 40, 6
QUERY = np.random.default_rng(1).normal(size=(BATCH, HEADS, LENGTH, SIZE)).astype("float32")
LAYERS = {
    "rotary": RotaryPosition(),
    "relative": RelativePosition(key_dim=SIZE, max_relative_distance=4),
    "t5, encoder": T5Position(num_heads=HEADS, num_buckets=8, max_distance=20),
    "t5, decoder": T5Position(num_heads=HEADS, num_buckets=8, max_distance=20, is_causal=True),
    "alibi": AlibiPosition(),
}


def built(layer, dtype="float32"):
    """A copy with weights, the same in each call."""
    layer = type(layer).from_config(layer.get_config() | {"dtype": dtype})
    layer.build((None, None, 4))
    return reference.randomize(layer)


def bias_of(layer, query_positions, key_positions):
    query = QUERY[:, :, query_positions]
    return reference.array(layer.bias(query, query_positions, key_positions))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_an_encoding_equals_the_formula_of_its_paper(layer):
    """Rotated queries and biases of every head."""
    layer = built(layer)
    rotate, bias = reference.position_hooks(layer, HEADS)
    positions = np.arange(LENGTH)
    rotated = reference.array(layer.rotate(QUERY, positions))
    found = layer.bias(QUERY, positions, positions[None])
    found = np.zeros(1) if found is None else reference.array(found)
    shape = (BATCH, HEADS, LENGTH, LENGTH)
    expected = np.zeros(shape)
    for b, h in np.ndindex(BATCH, HEADS):
        np.testing.assert_allclose(rotated[b, h], rotate(QUERY[b, h]), atol=1e-5)
        expected[b, h] = bias(h, QUERY[b, h].astype("float64"))
    np.testing.assert_allclose(np.broadcast_to(found, shape), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["relative", "t5, decoder", "alibi"])
def test_sentences_may_have_keys_at_different_positions(name):
    """As the rows of a cache after some were dropped."""
    layer, queries = built(LAYERS[name]), np.array([30, 31])
    keys = np.array([[0, 5, 6, 29, 30, 31], [17, 2, 31, 30, 30, 9]])
    found = bias_of(layer, queries, keys)
    whole = bias_of(layer, np.arange(LENGTH), np.arange(LENGTH)[None])
    for b in range(BATCH):
        expected = whole[b if len(whole) > 1 else 0][:, queries][:, :, keys[b]]
        np.testing.assert_allclose(found[b], expected, atol=1e-6)


def test_rotated_products_depend_on_the_distance_alone():
    layer, (query, key) = LAYERS["rotary"], QUERY[:, :, :2].transpose(2, 0, 1, 3)[:, :, :, None]
    products = [
        reference.array(layer.rotate(query, np.array([m])) * layer.rotate(key, np.array([n])))
        for m, n in [(3, 1), (1002, 1000)]
    ]
    np.testing.assert_allclose(products[0].sum(-1), products[1].sum(-1), atol=1e-3)


def test_slopes_worked_by_hand():
    """8 heads: the paper's 1/2 to 1/256. 12: those of 8, then the first four between them."""
    eight = [2.0**-i for i in range(1, 9)]
    np.testing.assert_allclose(alibi_slopes(8), eight)
    np.testing.assert_allclose(alibi_slopes(12), [*eight, *(2.0 ** -(i + 0.5) for i in range(4))])


@pytest.mark.parametrize(("is_causal", "count"), [(False, 16), (True, 32)])
def test_t5_has_the_buckets_of_its_published_code(is_causal, count):
    layer = T5Position(num_heads=1, is_causal=is_causal)
    found = layer._buckets()
    expected = [reference.t5_bucket(d, is_causal, 32, 128) for d in range(-128, 129)]
    np.testing.assert_array_equal(found, expected)
    assert set(found[:129]) == set(range(count))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_mixed_precision_is_near_float32(layer):
    whole, half, positions = built(layer), built(layer, "mixed_bfloat16"), np.arange(LENGTH)
    query = ops.cast(QUERY, "bfloat16")
    assert keras.backend.standardize_dtype(half.rotate(query, positions).dtype) == "bfloat16"
    for hook, arguments in (("rotate", [positions]), ("bias", [positions, positions[None]])):
        found, expected = (
            getattr(half, hook)(query, *arguments),
            getattr(whole, hook)(QUERY, *arguments),
        )
        if expected is not None:
            np.testing.assert_allclose(*map(reference.array, (found, expected)), atol=0.1)


def test_rotary_positions_need_heads_of_even_size():
    with pytest.raises(ValueError, match=r"key_dim must be even, got 5\."):
        RotaryPosition().rotate(np.zeros((1, 1, 2, 5), "float32"), np.arange(2))
