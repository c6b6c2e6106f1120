"""Recomputed layers: the same results, the same gradients and the same dropout."""

import importlib

import keras
import numpy as np
import pytest
import reference
from keras import ops, tree

from tf_transformer.layers import (
    DecoderLayer,
    Encoder,
    EncoderLayer,
    RelativePosition,
    causal_mask,
    padding_mask,
)
from tf_transformer.layers.later.remat import recompute

MEMORY = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
X = np.random.default_rng(2).normal(size=(2, 3, 8)).astype("float32")
MASK = padding_mask(np.array([[4, 5, 6, 2, 0], [4, 2, 0, 0, 0]]))
LAYERS = {
    "encoder layer": (EncoderLayer, lambda x: (x, None)),
    "decoder layer": (DecoderLayer, lambda x: (x, MEMORY, causal_mask(3), MASK)),
}

each_layer = pytest.mark.parametrize(("cls", "inputs_of"), LAYERS.values(), ids=LAYERS)


def seeded(cls):
    keras.utils.set_random_seed(3)
    layer = cls(num_heads=2, key_dim=4, d_ff=12, dropout_rate=0.5)
    layer.build(X.shape, MEMORY.shape) if cls is DecoderLayer else layer.build(X.shape)
    return reference.randomize(layer)


def run(layer, inputs, is_recomputed, **options):
    if is_recomputed:
        return recompute([layer], layer, *inputs, **options)
    return layer(*inputs, **options)


@each_layer
@pytest.mark.parametrize("training", [False, True])
def test_all_results_are_the_same(cls, inputs_of, training):
    """Also in a second call, which has other dropout noise."""
    plain, again = seeded(cls), seeded(cls)
    for _ in range(2):
        found, expected = (
            tree.flatten(run(layer, inputs_of(X), is_recomputed, training=training))
            for layer, is_recomputed in ((again, True), (plain, False))
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(*map(reference.array, (one, other)), atol=1e-6)


def gradients_of_weights(layer, function) -> list[np.ndarray]:
    """The gradients of a scalar with respect to a layer's weights."""
    weights = layer.trainable_weights

    def with_values(*values):
        with keras.StatelessScope(list(zip(weights, values, strict=True))):
            return function()

    if keras.backend.backend() == "jax":
        return reference.gradients(with_values, *(weight.value for weight in weights))
    if keras.backend.backend() == "torch":
        import torch

        found = torch.autograd.grad(function(), [weight.value for weight in weights])
        return list(map(reference.array, found))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        value = function()
    return [reference.array(x) for x in tape.gradient(value, [w.value for w in weights])]


@each_layer
def test_gradients_are_the_same(cls, inputs_of):
    """Of the input and of all weights; the second pass must draw the same dropout noise."""
    upstream = np.random.default_rng(4).normal(size=X.shape).astype("float32")

    def gradients(is_recomputed):
        layer = seeded(cls)

        def weighted(x=X):
            output = run(layer, inputs_of(x), is_recomputed, training=True).output
            return ops.sum(ops.multiply(output, upstream))

        return [*reference.gradients(weighted, X), *gradients_of_weights(layer, weighted)]

    found, expected = gradients(True), gradients(False)
    assert len(found) == 1 + len(seeded(cls).trainable_weights)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 1e-3
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_gradients_of_a_position_encoding_are_the_same():
    """Its weights belong to the stack, not to the layers that are recomputed."""
    sizes = {"num_layers": 2, "num_heads": 2, "key_dim": 4, "d_ff": 12}
    found = []
    for remat in (False, True):
        layer = Encoder(**sizes, remat=remat, position=RelativePosition(4, 2))
        layer.build(X.shape)
        layer = reference.randomize(layer)
        found.append(
            gradients_of_weights(layer, lambda: ops.sum(layer(X, training=True).output[:, 0] ** 3))  # noqa: B023
        )
    assert len(found[1]) == len(layer.trainable_weights)
    for one, other in zip(*found, strict=True):
        assert np.abs(one).max() > 1e-3
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_two_calls_draw_different_noise():
    layer = seeded(EncoderLayer)
    first, second = (
        reference.array(recompute([layer], layer, X, training=True).output) for _ in range(2)
    )
    assert np.abs(first - second).max() > 0.1


def test_a_stack_recomputes_its_layers_only_in_training(monkeypatch):
    remat_module = importlib.import_module("tf_transformer.layers.later.remat")
    recomputed = []

    def recording(layers, function, *inputs, **options):
        recomputed.extend(layers)
        return function(*inputs, **options)

    monkeypatch.setattr(remat_module, "recompute", recording)
    x = np.ones((2, 3, 6), "float32")
    for remat in (False, True):
        encoder = Encoder(num_layers=2, remat=remat, num_heads=2, key_dim=3, d_ff=5)
        encoder(x, training=False)
        assert recomputed == []
        encoder(x, training=True)
        assert recomputed == (list(encoder.layers) if remat else [])
