"""Layers and stacks against NumPy, with and without cross-attention; masks and causality."""

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    padding_mask,
)

BATCH, TARGET, SOURCE, D_MODEL, D_MEMORY = 2, 3, 5, 14, 19
SIZES = {"num_heads": 7, "key_dim": 11, "value_dim": 13, "d_ff": 17}
WITHOUT_MEMORY = {"has_cross_attention": False}

each_norm = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
each_bias = pytest.mark.parametrize("attention_bias", [False, True], ids=["no bias", "bias"])


def normal(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def built(layer, *inputs):
    layer.build(*(x.shape for x in inputs))
    return reference.randomize(layer)


def assert_near(found, expected):
    np.testing.assert_allclose(reference.array(found), expected, rtol=1e-5, atol=1e-5)


@each_norm
@each_bias
def test_an_encoder_layer_equals_numpy(norm_first, attention_bias):
    x = normal(BATCH, SOURCE, D_MODEL)
    options = {"norm_first": norm_first, "attention_bias": attention_bias}
    layer = built(EncoderLayer(**SIZES, **options), x)
    expected, weights, _ = zip(*(reference.block(layer, row) for row in x), strict=True)
    found = layer(x)
    assert_near(found.output, expected)
    assert_near(found.attention, weights)
    assert found.cross_attention == ()


@each_norm
@each_bias
def test_a_decoder_layer_equals_numpy(norm_first, attention_bias):
    x, memory = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MEMORY)
    options = {"norm_first": norm_first, "attention_bias": attention_bias}
    layer = built(DecoderLayer(**SIZES, **options), x, memory)
    mask = reference.causal_mask(TARGET)
    rows = zip(x, memory, strict=True)
    expected = list(zip(*(reference.block(layer, *row, mask=mask) for row in rows), strict=True))
    found = layer(x, memory)
    for one, other in zip(found[:3], expected, strict=True):
        assert_near(one, other)


@each_norm
@pytest.mark.parametrize("cls", [DecoderLayer, Decoder])
def test_a_decoder_without_cross_attention_equals_numpy(cls, norm_first):
    """As in a decoder-only model: it takes no memory, and has no weights for one."""
    x, mask = normal(BATCH, TARGET, D_MODEL), reference.causal_mask(TARGET)
    options = {**SIZES, **WITHOUT_MEMORY, "norm_first": norm_first}
    if cls is DecoderLayer:
        layer = built(DecoderLayer(**options), x)
        expected = [reference.block(layer, row, mask=mask)[0] for row in x]
    else:
        layer = built(Decoder(num_layers=3, **options), x)
        expected = [reference.stack(layer, row, mask=mask)[0] for row in x]
    assert_near(layer(x).output, expected)
    assert not any("cross" in weight.path for weight in layer.weights)


@each_norm
@pytest.mark.parametrize("cls", [Encoder, Decoder])
def test_a_stack_equals_numpy_with_the_weights_of_every_layer(cls, norm_first):
    x, memory = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MEMORY)
    layer = cls(num_layers=3, norm_first=norm_first, **SIZES)
    if cls is Encoder:
        found = built(layer, x)(x)
        expected = [reference.stack(layer, row) for row in x]
        assert found.cross_attention == [(), (), ()]
    else:
        built(layer, x, memory)
        found = layer(x, memory)
        mask = reference.causal_mask(TARGET)
        expected = [reference.stack(layer, *row, mask) for row in zip(x, memory, strict=True)]
    outputs, attention, cross_attention = zip(*expected, strict=True)
    assert_near(found.output, outputs)
    for number in range(3):
        assert_near(found.attention[number], [weights[number] for weights in attention])
        if cls is Decoder:
            of_layer = [weights[number] for weights in cross_attention]
            assert_near(found.cross_attention[number], of_layer)


@each_norm
def test_only_pre_norm_ends_a_stack_with_a_norm(norm_first):
    shape = (None, None, D_MODEL)
    encoder = Encoder(num_layers=2, **SIZES, norm_first=norm_first)
    decoder = Decoder(num_layers=2, **SIZES, norm_first=norm_first)
    encoder.build(shape)
    decoder.build(shape, shape)
    final = 2 if norm_first else 0  # a gain and a bias
    # Self-attention has 2 matrices, cross-attention 3, a feed-forward network 2 and 2 biases, a
    # norm a gain and a bias.
    assert len(encoder.weights) == 2 * (2 + 4 + 2 * 2) + final
    assert len(decoder.weights) == 2 * (2 + 3 + 4 + 3 * 2) + final


def test_every_layer_of_a_stack_gets_the_masks():
    x, ids = normal(BATCH, SOURCE, D_MODEL), np.array([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    encoder = built(Encoder(num_layers=4, **SIZES), x)
    decoder = built(Decoder(num_layers=4, **SIZES), x, x)
    mask = padding_mask(ids)
    changed = np.where(ids[:, :, None] == 0, -x, x)

    def run(x):
        memory = encoder(x, attention_mask=mask).output
        output = decoder(x, memory, cross_attention_mask=mask).output
        return ops.convert_to_numpy(memory), ops.convert_to_numpy(output)

    for before, after in zip(run(x), run(changed), strict=True):
        np.testing.assert_allclose(before[0, :3], after[0, :3], atol=1e-5)  # real positions
        assert np.abs(before[0, 3:] - after[0, 3:]).max() > 0.1


@each_norm
@pytest.mark.parametrize("options", [{}, WITHOUT_MEMORY], ids=["", "without cross-attention"])
def test_the_gradient_of_a_decoder_is_zero_from_every_future_position(norm_first, options):
    x, memory = normal(1, SOURCE, D_MODEL), [] if options else [normal(1, TARGET, D_MODEL)]
    # Random gains: with gains of 1 the sum of a norm's outputs has no gradient.
    decoder = built(Decoder(num_layers=2, **SIZES, norm_first=norm_first, **options), x, *memory)

    def sums(x):  # (T,)
        output = decoder(x, *memory).output
        return ops.sum(output, axis=(0, 2))

    gradients = np.abs(jacobian(sums, x)).max(axis=(1, 3))  # (T, T): output, input
    np.testing.assert_array_equal(gradients > 0, np.tri(SOURCE, dtype=bool))


def jacobian(function, x):
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.jacobian(function)(x))
    if keras.backend.backend() == "torch":
        import torch

        return torch.autograd.functional.jacobian(function, torch.tensor(x)).numpy()
    import tensorflow as tf

    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x).numpy()
