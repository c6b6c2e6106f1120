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
    causal_mask,
    padding_mask,
)

BATCH, TARGET, SOURCE, D_MODEL, D_MEMORY = 2, 3, 5, 14, 19
SIZES = {"num_heads": 7, "key_dim": 11, "value_dim": 13, "d_ff": 17}

variants = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
biases = pytest.mark.parametrize("attention_bias", [False, True], ids=["no bias", "bias"])


def normal(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


@variants
@biases
def test_encoder_layer_equals_numpy(norm_first, attention_bias):
    layer = EncoderLayer(**SIZES, norm_first=norm_first, attention_bias=attention_bias)
    x = normal(BATCH, SOURCE, D_MODEL)
    layer.build(x.shape)
    output = ops.convert_to_numpy(reference.randomize(layer)(x))
    expected = [reference.encoder_layer(layer, sentence) for sentence in x]
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


@variants
@biases
def test_decoder_layer_equals_numpy(norm_first, attention_bias):
    layer = DecoderLayer(**SIZES, norm_first=norm_first, attention_bias=attention_bias)
    x, memory = normal(BATCH, TARGET, D_MODEL), normal(BATCH, SOURCE, D_MEMORY)
    layer.build(x.shape, memory.shape)
    output = reference.randomize(layer)(x, memory, causal_mask(TARGET))
    expected = [reference.decoder_layer(layer, *pair) for pair in zip(x, memory, strict=True)]
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, rtol=1e-5, atol=1e-5)


@variants
def test_only_pre_norm_ends_a_stack_with_a_norm(norm_first):
    shape = (None, None, D_MODEL)
    encoder = Encoder(num_layers=2, **SIZES, norm_first=norm_first)
    decoder = Decoder(num_layers=2, **SIZES, norm_first=norm_first)
    encoder.build(shape)
    decoder.build(shape, shape)
    final = 2 if norm_first else 0  # a gain and a bias
    # Self-attention has 2 matrices, cross-attention 3, a feed-forward 2 and 2 biases, a norm a
    # gain and a bias.
    assert len(encoder.weights) == 2 * (2 + 4 + 2 * 2) + final
    assert len(decoder.weights) == 2 * (2 + 3 + 4 + 3 * 2) + final


def test_every_layer_of_a_stack_gets_the_masks():
    encoder = Encoder(num_layers=4, **SIZES)
    decoder = Decoder(num_layers=4, **SIZES)
    x, ids = normal(BATCH, SOURCE, D_MODEL), np.array([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    mask = padding_mask(ids)
    changed = np.where(ids[:, :, None] == 0, -x, x)
    encoder.build(x.shape)
    decoder.build(x.shape, x.shape)
    reference.randomize(encoder)
    reference.randomize(decoder)

    def run(x):
        memory = encoder(x, attention_mask=mask)
        output = decoder(x, memory, causal_mask(SOURCE), mask)
        return ops.convert_to_numpy(memory), ops.convert_to_numpy(output)

    for before, after in zip(run(x), run(changed), strict=True):
        np.testing.assert_allclose(before[0, :3], after[0, :3], atol=1e-5)  # the real positions
        assert np.abs(before[0, 3:] - after[0, 3:]).max() > 0.1


@variants
def test_decoder_gradient_is_zero_from_every_future_position(norm_first):
    decoder = Decoder(num_layers=2, **SIZES, norm_first=norm_first)
    x, memory = normal(1, SOURCE, D_MODEL), normal(1, TARGET, D_MODEL)
    decoder.build(x.shape, memory.shape)
    reference.randomize(decoder)  # with gains of 1 the sum of a norm's outputs has no gradient

    def sums(x):  # (T,)
        return ops.sum(decoder(x, memory, causal_mask(SOURCE)), axis=(0, 2))

    gradients = np.abs(jacobian(sums, x)).max(axis=(1, 3))  # (T, T): output, input
    np.testing.assert_array_equal(gradients > 0, np.tri(SOURCE, dtype=bool))


def jacobian(function, x):
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.jacobian(function)(x))
    import tensorflow as tf

    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x).numpy()
