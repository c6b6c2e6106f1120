"""Patterns of self-attention against NumPy by their definitions, and the memory that they need."""

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers import AlibiPosition, RotaryPosition
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.variants import SELF_ATTENTION
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.models.transformer import Transformer

BATCH, LENGTH, D_MODEL, HEADS, GROUPS, SIZE = 2, 11, 13, 4, 2, 6
X = np.random.default_rng(1).normal(size=(BATCH, LENGTH, D_MODEL)).astype("float32")
REAL = [11, 7]  # positions of each sentence; padding follows
ENCODINGS = {"none": None, "rotary": RotaryPosition(), "alibi": AlibiPosition()}


def sees(name: str, window: int, is_causal: bool, i: int, j: int) -> bool:
    """Whether position i attends to position j."""
    if is_causal and j > i:
        return False
    near = i - j < window if is_causal else abs(i - j) <= window // 2
    return name == "linear" or near or (name == "strided" and (i - j) % window == 0)


def make_layer(name, window, is_causal):
    sizes = {"num_heads": HEADS, "key_dim": SIZE, "value_dim": 5, "num_key_value_heads": GROUPS}
    if name != "linear":  # it has no window
        sizes["attention_window"] = window
    layer = SELF_ATTENTION[name](is_causal=is_causal, **sizes)
    layer.build(X.shape)
    return reference.randomize(layer)


def attend(layer, x, encoding=None, real=REAL):
    """Self-attention with padding hidden."""
    length = x.shape[1]
    mask = np.arange(length) < np.array(real)[:, None]
    arange = np.arange(length)
    positions = encoding and Positions(encoding, arange, arange[None])
    return layer(x, mask[:, None, None], positions=positions)


@pytest.mark.parametrize("is_causal", [True, False], ids="is_causal={}".format)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("name", "window"), [("local", 4), ("strided", 3)], ids=str)
def test_attention_equals_numpy_with_a_full_mask(name, window, encoding, is_causal):
    layer = make_layer(name, window, is_causal)
    found = attend(layer, X, ENCODINGS[encoding])
    hooks = reference.position_hooks(ENCODINGS[encoding], HEADS)
    first = window - 1 if is_causal else window // 2
    near = first + 1 + (0 if is_causal else window // 2)
    for row, length in enumerate(REAL):
        pairs = [
            [sees(name, window, is_causal, i, j) for j in range(length)] for i in range(length)
        ]
        x = X[row, :length].astype("float64")
        expected, weights = reference.multi_head_attention(layer, x, x, np.array(pairs), *hooks)
        output = reference.array(found.output)[row, :length]
        np.testing.assert_allclose(output, expected, rtol=0, atol=1e-5)
        for i, j in np.ndindex(length, length):  # the weights in their layout
            offset = j - i + first
            if 0 <= offset < near:
                column = offset
            elif pairs[i][j]:
                column = near + j // window
            else:
                continue
            compact = reference.array(found.weights[row, :, i, column])
            np.testing.assert_allclose(compact, weights[:, i, j], rtol=0, atol=1e-5)
        total = reference.array(found.weights)[row, :, :length].sum(axis=-1)
        np.testing.assert_allclose(total, 1, atol=1e-5)


@pytest.mark.parametrize("is_causal", [True, False], ids="is_causal={}".format)
@pytest.mark.parametrize("encoding", ["none", "rotary"])
def test_linear_attention_equals_its_formula(encoding, is_causal):
    """Σⱼ R φ(qᵢ) · R φ(kⱼ) vⱼ / Σⱼ φ(qᵢ) · φ(kⱼ), R the rotation."""
    layer = make_layer("linear", 1, is_causal)
    found = attend(layer, X, ENCODINGS[encoding])
    assert found.weights == ()
    rotate, _ = reference.position_hooks(ENCODINGS[encoding], HEADS)
    for row, length in enumerate(REAL):
        x = X[row, :length].astype("float64")
        query, key, value = (x @ kernel + bias for kernel, bias in reference.projections(layer))
        allowed = np.tri(length) if is_causal else np.ones((length, length))
        heads = []
        for h in range(HEADS):
            g = h * GROUPS // HEADS
            q, k = query[:, h * SIZE : (h + 1) * SIZE], key[:, g * SIZE : (g + 1) * SIZE]
            q, k = (np.where(y > 0, y + 1, np.exp(y)) for y in (q, k))
            numerators = rotate(q) @ rotate(k).T * allowed @ value[:, g * 5 : (g + 1) * 5]
            heads.append(numerators / (q @ k.T * allowed).sum(axis=1, keepdims=True))
        expected = reference.linear(layer.output_projection, np.concatenate(heads, axis=1))
        output = reference.array(found.output)[row, :length]
        np.testing.assert_allclose(output, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("is_causal", [True, False], ids="is_causal={}".format)
@pytest.mark.parametrize("name", ["local", "strided", "linear"])
def test_more_padding_and_later_positions_change_nothing(name, is_causal):
    layer = make_layer(name, 4, is_causal)
    expected = reference.array(attend(layer, X).output)
    padded = np.pad(X, [(0, 0), (0, 9), (0, 0)], constant_values=3.0)
    found = reference.array(attend(layer, padded).output)
    for row, length in enumerate(REAL):
        np.testing.assert_allclose(found[row, :length], expected[row, :length], rtol=0, atol=1e-5)
    changed = X.copy()
    changed[0, 6] += 1.0
    changes = np.abs(reference.array(attend(layer, changed).output) - expected)[0].max(axis=1)
    assert changes[6] > 1e-3
    assert (changes[:6].max() < 1e-6) == is_causal


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="reads TensorFlow's graph")
@pytest.mark.parametrize("name", ["local", "strided", "linear"])
def test_training_builds_nothing_of_length_times_length(name):
    import tensorflow as tf

    length = 192
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 1, "dropout_rate": 0.0}
    window = {"attention": name, "attention_window": 16}
    model = LanguageModel(7, ModelConfig(**sizes, **window))
    model.build()

    @tf.function(autograph=False)
    def update(ids):
        with tf.GradientTape() as tape:
            loss = ops.sum(model.run(ids, training=True).states ** 2)
        return tape.gradient(loss, model.trainable_variables)

    graph = update.get_concrete_function(tf.TensorSpec((1, length), "int32")).graph
    shapes = {tuple(out.shape) for op in graph.get_operations() for out in op.outputs if out.shape}
    assert max(np.prod(shape) for shape in shapes if None not in shape) < length**2 / 2


def test_a_mask_of_queries_is_an_error():
    layer = make_layer("local", 4, True)
    with pytest.raises(ValueError, match=r"take a mask \(B, 1, 1, T\) that hides keys, got"):
        layer(X, attention_mask=np.ones((1, 1, LENGTH, LENGTH), bool))


def test_linear_attention_refuses_biases():
    with pytest.raises(ValueError, match="has no scores that AlibiPosition could change"):
        attend(make_layer("linear", 1, True), X, AlibiPosition())
    with pytest.raises(InputError, match=r"no scores that model\.position=t5 could change"):
        ModelConfig(attention="linear", position="t5")
    with pytest.raises(InputError, match=r"attention_dropout_rate must be 0, got 0\.1"):
        ModelConfig(attention="linear", attention_dropout_rate=0.1)
    with pytest.raises(InputError, match=r"model\.decoder_attention=linear has no scores that"):
        ModelConfig(decoder_attention="linear", position="t5")


def test_models_without_self_attention_have_no_pattern():
    with pytest.raises(InputError, match=r"model\.architecture=luong does not have"):
        ModelConfig(attention="local", architecture="luong")
    with pytest.raises(InputError, match=r"model\.decoder_attention=full is a pattern"):
        ModelConfig(decoder_attention="full", architecture="luong")
    with pytest.raises(InputError, match=r"model\.attention_window must be positive, got 0"):
        ModelConfig(attention_window=0)


def test_the_decoder_may_have_its_own_kind():
    config = ModelConfig(attention="local", decoder_attention="linear")
    assert (config.encoder.attention, config.decoder.attention) == ("local", "linear")
    assert ModelConfig(attention="local").decoder.attention == "local"
    model = Transformer(7, ModelConfig(num_layers=1, d_model=8, decoder_attention="linear"))
    kinds = [type(side.layers[0].self_attention) for side in (model.encoder, model.decoder)]
    assert kinds == [SELF_ATTENTION["full"], SELF_ATTENTION["linear"]]
