"""What every layer owes Keras: a config that makes it again, shapes, and mixed precision."""

from typing import NamedTuple

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer import layers

X = np.random.default_rng(1).normal(size=(2, 3, 14)).astype("float32")
MEMORY = np.random.default_rng(2).normal(size=(2, 5, 13)).astype("float32")
IDS = np.array([[3, 1, 4], [1, 5, 0]])


class Case(NamedTuple):
    options: dict  # each unlike its default, so that one left out of the config shows
    inputs: list
    call_options: dict | None = None


attention = {"num_heads": 2, "key_dim": 3, "value_dim": 7}
rates = {"dropout_rate": 0.1, "attention_dropout_rate": 0.2, "feed_forward_dropout_rate": 0.3}
sizes = attention | rates | {"d_ff": 11, "attention_bias": True, "norm_first": True}
CASES = {
    "Dropout": Case({"rate": 0.3, "seed": 5}, [X], {"training": True}),
    "LayerNorm": Case({"epsilon": 0.1}, [X]),
    "MultiHeadAttention": Case(attention | {"use_bias": True, "dropout_rate": 0.2}, [X, MEMORY]),
    "FeedForward": Case({"d_ff": 11, "dropout_rate": 0.2}, [X]),
    "EncoderLayer": Case(sizes, [X]),
    "Encoder": Case(sizes | {"num_layers": 2, "remat": True}, [X]),
    "DecoderLayer": Case(sizes, [X, MEMORY]),
    "Decoder": Case(sizes | {"num_layers": 2, "remat": True}, [X, MEMORY]),
    "TokenEmbedding": Case({"vocabulary_size": 7, "d_model": 14}, [IDS]),
    "SinusoidalPosition": Case({}, [X]),
    "LearnedPosition": Case({"max_length": 5}, [X]),
    "Residual": Case({"dropout_rate": 0.2, "norm_first": True}, [X], {"sublayer": lambda x: 2 * x}),
}

each_layer = pytest.mark.parametrize("name", CASES)


def make(name, **more):
    """The layer, with its weights made."""
    keras.utils.set_random_seed(1)
    layer = getattr(layers, name)(**CASES[name].options, **more)
    run(name, layer)
    return layer


def run(name, layer):
    return layer(*CASES[name].inputs, **CASES[name].call_options or {})


def test_no_layer_is_missing_here():
    exported = {getattr(layers, name) for name in layers.__all__}
    classes = {x for x in exported if isinstance(x, type) and issubclass(x, keras.layers.Layer)}
    assert {cls.__name__ for cls in classes} == set(CASES)


@each_layer
def test_a_layer_made_from_its_config_computes_the_same(name):
    layer = reference.randomize(make(name))
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()
    assert CASES[name].options.items() <= layer.get_config().items()
    run(name, again)
    again.set_weights(layer.get_weights())
    expected = ops.convert_to_numpy(run(name, layer))
    np.testing.assert_array_equal(ops.convert_to_numpy(run(name, again)), expected)


@each_layer
def test_the_symbolic_shape_is_the_real_one(name):
    layer = make(name)
    shapes = [x.shape for x in CASES[name].inputs]
    assert layer.compute_output_shape(*shapes) == tuple(run(name, layer).shape)


@each_layer
def test_mixed_precision_computes_in_bfloat16_on_float32_weights(name):
    whole, layer = make(name), make(name, dtype="mixed_bfloat16")
    layer.set_weights(whole.get_weights())
    output = run(name, layer)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    assert {weight.dtype for weight in layer.weights} <= {"float32"}
    # bfloat16 has 8 bits: a relative error of 1/256 an operation.
    expected = ops.convert_to_numpy(run(name, whole))
    np.testing.assert_allclose(reference.array(ops.cast(output, "float32")), expected, atol=0.1)
