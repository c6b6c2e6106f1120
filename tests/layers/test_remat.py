"""Recomputed layers give what layers give, and draw what they would have drawn."""

import importlib

import keras
import numpy as np
import pytest

from tf_transformer.layers import DecoderLayer, Encoder, EncoderLayer, causal_mask, padding_mask
from tf_transformer.layers.remat import recomputed

MEMORY = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
X = np.random.default_rng(2).normal(size=(2, 3, 8)).astype("float32")
MASK = padding_mask(np.array([[4, 5, 6, 2, 0], [4, 2, 0, 0, 0]]))


def seeded(make):
    keras.utils.set_random_seed(3)
    layer = make()
    layer.build(X.shape, MEMORY.shape) if isinstance(layer, DecoderLayer) else layer.build(X.shape)
    return layer


@pytest.mark.parametrize("training", [False, True])
def test_an_encoder_layer(training):
    plain, again = (seeded(lambda: EncoderLayer(2, 4, 12, dropout_rate=0.5)) for _ in range(2))
    for _ in range(2):  # the random state goes on
        expected = plain(X, None, training=training)
        np.testing.assert_allclose(recomputed(again, X, None, training=training), expected)


@pytest.mark.parametrize("training", [False, True])
def test_a_decoder_layer_with_masks(training):
    plain, again = (seeded(lambda: DecoderLayer(2, 4, 12, dropout_rate=0.5)) for _ in range(2))
    inputs = (X, MEMORY, causal_mask(3), MASK)
    for _ in range(2):
        expected = plain(*inputs, training=training)
        np.testing.assert_allclose(recomputed(again, *inputs, training=training), expected)


def test_two_calls_draw_two_masks():
    layer = seeded(lambda: EncoderLayer(2, 4, 12, dropout_rate=0.5))
    first, second = (np.asarray(recomputed(layer, X, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 0.1


def test_a_stack_recomputes_its_layers_in_training_alone(monkeypatch):
    stack = importlib.import_module("tf_transformer.layers.stack")
    recomputed_layers = []

    def noted(layer, *inputs, **options):
        recomputed_layers.append(layer)
        return layer(*inputs, **options)

    monkeypatch.setattr(stack, "recomputed", noted)
    x = np.ones((2, 3, 6), "float32")
    for remat in (False, True):
        encoder = Encoder(2, remat=remat, num_heads=2, key_dim=3, d_ff=5)
        encoder(x, training=False)
        assert recomputed_layers == []
        encoder(x, training=True)
        assert recomputed_layers == (list(encoder.layers) if remat else [])
