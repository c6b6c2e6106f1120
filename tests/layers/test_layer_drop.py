"""LayerDrop: the layers that training skips."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from tests import reference
from tf_transformer.layers import Decoder, Encoder, LayerDrop

X = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
SIZES = {"num_layers": 3, "num_heads": 2, "key_dim": 3, "d_ff": 7}


@pytest.mark.parametrize(
    ("stack_class", "norm_first"),
    [
        pytest.param(Encoder, False, id="Encoder, post-norm"),
        pytest.param(Encoder, True, id="Encoder, pre-norm", marks=pytest.mark.slow),
        pytest.param(Decoder, False, id="Decoder, post-norm", marks=pytest.mark.slow),
        pytest.param(Decoder, True, id="Decoder, pre-norm"),
    ],
)
def test_training_runs_every_subset_of_the_layers_and_inference_runs_all(stack_class, norm_first):
    keras.utils.set_random_seed(1)
    stack = stack_class(**SIZES, norm_first=norm_first, layer_drop_rate=0.5)
    inputs = [X] if stack_class is Encoder else [X, X[::-1]]
    stack(*inputs)
    reference.randomize(stack)
    expected = {}
    for kept in itertools.product([False, True], repeat=3):
        x = X
        for layer, is_kept in zip(stack.layers, kept, strict=True):
            x = layer(x, *inputs[1:]).output if is_kept else x
        expected[kept] = reference.array(stack.final_norm(x) if norm_first else x)
    found = [reference.array(stack(*inputs, training=True).output) for _ in range(60)]
    drawn = [
        next(kept for kept, y in expected.items() if np.allclose(y, output, atol=1e-5))
        for output in found
    ]
    assert set(drawn) == set(expected)
    output = reference.array(stack(*inputs).output)
    np.testing.assert_allclose(output, expected[True, True, True], 1e-5)


@pytest.mark.parametrize("rate", [0.1, 0.8])
def test_a_layer_is_skipped_with_the_given_probability(rate):
    layer = LayerDrop(rate, seed=1)
    x, output = ops.zeros(()), ops.ones(())
    skipped = [float(layer(x, output, training=True)) == 0 for _ in range(1000)]
    assert abs(np.mean(skipped) - rate) < 4 * np.sqrt(rate * (1 - rate) / 1000)
    assert float(layer(x, output, training=False)) == 1
