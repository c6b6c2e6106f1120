"""What every layer owes Keras: a config, shapes, mixed precision, functional models, Sequential."""

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


@keras.saving.register_keras_serializable(package="tests")
def double(x):
    return 2 * x


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
    "Residual": Case({"dropout_rate": 0.2, "norm_first": True}, [X], {"sublayer": double}),
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
def test_the_config_of_a_layer_with_a_policy_object_as_dtype(name):
    policy = keras.DTypePolicy("mixed_bfloat16")
    layer = getattr(layers, name)(**CASES[name].options, dtype=policy)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.dtype_policy == policy


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


# In models made of layers

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]


@pytest.fixture(params=POLICIES)
def policy(request):
    """The name of Keras' global policy while a test runs."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


def save_and_load(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def numpy(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))


def summary(model):
    lines = []
    model.summary(line_length=120, print_fn=lines.append)
    return "\n".join(map(str, lines))


def trained(model, *data):
    """The model after updates that have moved every weight.

    Several: in float16 Keras passes over those that overflow, with a smaller scale for the next.
    """
    before = [numpy(weight) for weight in model.trainable_weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss)
    model.fit(*data, epochs=4, verbose=0)
    for weight, value in zip(model.trainable_weights, before, strict=True):
        assert np.abs(numpy(weight) - value).max() > 1e-3, weight.path
    return model


@each_layer
def test_a_functional_model_of_the_layer_computes_what_the_layer_does(name, policy, tmp_path):
    options, tensors, call_options = CASES[name]
    inputs = [keras.Input((None, *x.shape[2:]), dtype=x.dtype) for x in tensors]
    layer = getattr(layers, name)(**options)
    model = keras.Model(inputs, layer(*inputs, **call_options or {}))
    assert model.output_shape == layer.compute_output_shape(*(x.shape for x in inputs))
    assert model.output.dtype == keras.config.dtype_policy().compute_dtype
    loaded = save_and_load(reference.randomize(model), tmp_path)
    # Dropout draws new noise at every call, and the first of each model is the same.
    expected = numpy(model(tensors))
    np.testing.assert_array_equal(numpy(loaded(tensors)), expected)
    if name != "Dropout":
        np.testing.assert_array_equal(numpy(run(name, layer)), expected)


def test_a_sequential_model_of_layers_trains_and_is_saved(policy, tmp_path):
    parts = [
        layers.TokenEmbedding(7, 14),
        layers.SinusoidalPosition(),
        layers.LearnedPosition(5),
        layers.Dropout(0.1),
        layers.EncoderLayer(2, 3, 11, dropout_rate=0.1),
        layers.MultiHeadAttention(2, 3),
        layers.FeedForward(11),
        layers.LayerNorm(),
        layers.Encoder(2, num_heads=2, key_dim=3, d_ff=11, norm_first=True),
    ]
    of_one_input = {name for name in CASES if not name.startswith("Decoder")} - {"Residual"}
    assert {type(part).__name__ for part in parts} == of_one_input
    head = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((None,), dtype="int32"), *parts, *head])
    assert [part.output.shape for part in parts] == [(None, None, 14)] * len(parts)
    table = summary(model)
    assert table.count("(None, None, 14)") == len(parts)
    assert "?" not in table
    trained(model, IDS, np.array([1, 2]))
    np.testing.assert_array_equal(numpy(save_and_load(model, tmp_path)(IDS)), numpy(model(IDS)))


def encoder_and_decoder():
    """(source, target) to logits, of layers alone; targets are of three ids."""
    source, target = keras.Input((None,), dtype="int32"), keras.Input((3,), dtype="int32")
    embedding, position = layers.TokenEmbedding(7, 14), layers.SinusoidalPosition()
    sizes = {"num_layers": 1, "num_heads": 2, "key_dim": 3, "d_ff": 11, "dropout_rate": 0.1}
    mask = layers.padding_mask(source)
    memory = layers.Encoder(**sizes)(position(embedding(source)), attention_mask=mask)
    x = position(embedding(target))
    x = layers.Decoder(**sizes)(x, memory, layers.causal_mask(3), mask)
    return keras.Model([source, target], keras.layers.Dense(7)(x))


def test_a_functional_encoder_and_decoder_trains_and_is_saved(policy, tmp_path):
    model = encoder_and_decoder()
    assert model.output_shape == (None, 3, 7)
    assert "?" not in summary(model)
    padded = np.pad(IDS, [(0, 0), (0, 2)])
    trained(model, [padded, IDS], IDS)
    loaded = save_and_load(model, tmp_path)
    expected = numpy(model([padded, IDS]))
    np.testing.assert_array_equal(numpy(loaded([padded, IDS])), expected)
    # The masks are part of the graph: padding changes nothing, nor do future targets.
    atol = {"float32": 1e-5}.get(policy, 0.1)
    np.testing.assert_allclose(numpy(loaded([IDS, IDS])), expected, atol=atol)
    other = IDS.copy()
    other[:, 2] = 6
    found = numpy(loaded([padded, other]))
    np.testing.assert_allclose(found[:, :2], expected[:, :2], atol=atol)
    assert np.abs(found[:, 2] - expected[:, 2]).max() > 0.1


def test_a_functional_model_of_layers_is_drawn():
    pytest.importorskip("pydot", reason="Keras draws with pydot")
    graph = keras.utils.model_to_dot(encoder_and_decoder(), show_shapes=True).to_string()
    for part in ("TokenEmbedding", "SinusoidalPosition", "Encoder", "Decoder"):
        assert part in graph
