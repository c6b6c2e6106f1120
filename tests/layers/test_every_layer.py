"""Every layer in Keras: config, shapes, mixed precision, functional and sequential models."""

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
    """A layer with options and inputs."""

    layer: str
    options: dict  # none is a default, so that an option missing in the config is noticed
    inputs: list
    call_options: dict = {}  # noqa: RUF012


attention = {"num_heads": 2, "key_dim": 3, "value_dim": 7}
rates = {"dropout_rate": 0.1, "attention_dropout_rate": 0.2, "feed_forward_dropout_rate": 0.3}
variants = {"num_key_value_heads": 1, "activation": "swiglu", "normalization": "rms_norm"}
sizes = attention | rates | variants | {"d_ff": 11, "attention_bias": True, "norm_first": True}
stack = sizes | {"num_layers": 2, "remat": True, "layer_drop_rate": 0.1}
linear = {"attention": "linear", "attention_dropout_rate": 0.0}
no_memory = {"has_cross_attention": False}
CASES = [
    Case("Dropout", {"rate": 0.3, "seed": 5}, [X], {"training": True}),
    Case("LayerDrop", {"rate": 0.5, "seed": 5}, [X, X[::-1]]),
    Case("LayerNorm", {"epsilon": 0.1}, [X]),
    Case("SelfAttention", attention | {"use_bias": True, "dropout_rate": 0.2}, [X]),
    Case("CrossAttention", attention | {"use_bias": True, "dropout_rate": 0.2}, [X, MEMORY]),
    Case("RMSNorm", {"epsilon": 0.1}, [X]),
    Case("FeedForward", {"d_ff": 11, "dropout_rate": 0.2, "activation": "gelu"}, [X]),
    Case("GatedFeedForward", {"d_ff": 11, "dropout_rate": 0.2}, [X]),
    Case("SelfAttention", attention | {"is_causal": True}, [X]),
    Case("LocalAttention", attention | {"attention_window": 3}, [X]),
    Case("StridedAttention", attention | {"attention_window": 3}, [X]),
    Case("LinearAttention", attention | {"is_causal": True}, [X]),
    Case("SSRU", {"is_causal": True}, [X]),
    Case("EncoderLayer", sizes, [X]),
    Case("Encoder", stack | {"attention": "strided", "attention_window": 3}, [X]),
    Case("DecoderLayer", sizes, [X, MEMORY]),
    Case("DecoderLayer", sizes | no_memory, [X]),
    Case("Decoder", stack | {"attention": "local", "attention_window": 2}, [X, MEMORY]),
    Case("Decoder", stack | linear | no_memory, [X]),
    Case("Decoder", stack | {"attention": "ssru"}, [X, MEMORY]),
    Case("TokenEmbedding", {"vocabulary_size": 7, "d_model": 14}, [IDS]),
    Case("BiasedEmbedding", {"vocabulary_size": 7, "d_model": 14}, [IDS]),
    Case("ZeroStartEmbedding", {"vocabulary_size": 7, "d_model": 14}, [IDS]),
    Case("SinusoidalPosition", {}, [X]),
    Case("HalfSinusoids", {}, [X]),
    Case("MarianPosition", {}, [X]),
    Case("OpenNMTPosition", {}, [X]),
    Case("FairseqPosition", {}, [X]),
    Case("LearnedPosition", {"max_length": 5}, [X]),
    Case("RotaryPosition", {}, [X]),
    Case("RelativePosition", {"key_dim": 4, "max_relative_distance": 2}, [X]),
    Case(
        "T5Position",
        {"num_heads": 2, "is_causal": True, "num_buckets": 8, "max_distance": 9},
        [X],
    ),
    Case("AlibiPosition", {}, [X]),
    Case("Residual", {"dropout_rate": 0.2, "norm_first": True}, [X, X[::-1]]),
]

each_layer = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.layer} of {len(case.inputs)}"
)


def make(case, **more):
    """The built layer."""
    keras.utils.set_random_seed(1)
    layer = getattr(layers, case.layer)(**case.options, **more)
    run(case, layer)
    return layer


def run(case, layer):
    return output_of(layer(*case.inputs, **case.call_options))


def output_of(result):
    """The output in the record that a layer with attention returns, or the tensor of others."""
    return getattr(result, "output", result)


attention_names = {"attention_bias": "use_bias", "attention_dropout_rate": "dropout_rate"}
feed_forward_names = {"feed_forward_dropout_rate": "dropout_rate"}
LONGER = {  # arguments of single layers have shorter names than fields of the configuration
    **dict.fromkeys((layers.SelfAttention, layers.CrossAttention), attention_names),
    **dict.fromkeys((layers.FeedForward, layers.GatedFeedForward), feed_forward_names),
}


def options_in(layer, names) -> dict:
    """These options in the configuration of a layer, where some have longer names."""
    config = layer.get_config()
    config |= config.get("config", {})
    config = {LONGER.get(type(layer), {}).get(name, name): config[name] for name in config}
    return {name: config[name] for name in names}


def test_no_layer_is_missing_here():
    exported = {getattr(layers, name) for name in layers.__all__}
    classes = {x for x in exported if isinstance(x, type) and issubclass(x, keras.layers.Layer)}
    classes -= {layers.PositionEncoding, layers.Attention}  # base classes: no config has them
    assert classes == {getattr(layers, case.layer) for case in CASES}


@each_layer
def test_a_layer_made_from_its_config_computes_the_same(case):
    layer = reference.randomize(make(case))
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()
    assert options_in(layer, case.options) == case.options
    run(case, again)
    again.set_weights(layer.get_weights())
    expected = ops.convert_to_numpy(run(case, layer))
    np.testing.assert_array_equal(ops.convert_to_numpy(run(case, again)), expected)


EARLIER = {
    "SelfAttention": {
        **{"num_heads": 2, "key_dim": 3, "value_dim": 7, "use_bias": True, "dropout_rate": 0.2},
        **{"num_key_value_heads": 1, "pattern": {"class_name": "Pattern", "config": {}}},
    },
    "FeedForward": {"d_ff": 11, "dropout_rate": 0.2, "activation": "gelu"},
    "EncoderLayer": sizes | {"attention": "local", "attention_window": 3, "value_dim": None},
    "DecoderLayer": sizes | {"has_cross_attention": False, "num_key_value_heads": None},
    "Encoder": stack | {"position": None},
}


@pytest.mark.parametrize(("name", "config"), EARLIER.items(), ids=EARLIER)
def test_a_layer_of_an_earlier_version_can_be_made_from_its_config(name, config):
    """`value_dim` None was `key_dim`, and the fields of the configuration were arguments."""
    layer = getattr(layers, name).from_config(dict(config))
    given = [key for key, value in config.items() if value is not None and key != "pattern"]
    assert options_in(layer, given) == {key: config[key] for key in given}
    assert layer.config.value_dim == (config.get("value_dim") or 3) or name == "FeedForward"


@each_layer
def test_a_policy_object_as_dtype_is_part_of_the_config(case):
    policy = keras.DTypePolicy("mixed_bfloat16")
    layer = getattr(layers, case.layer)(**case.options, dtype=policy)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.dtype_policy == policy


@each_layer
def test_the_symbolic_shape_is_the_real_one(case):
    layer = make(case)
    inputs = [keras.KerasTensor(x.shape, x.dtype) for x in case.inputs]
    assert output_of(layer(*inputs)).shape == tuple(run(case, layer).shape)


@each_layer
def test_mixed_precision_computes_in_bfloat16_with_float32_weights(case):
    whole, layer = make(case), make(case, dtype="mixed_bfloat16")
    layer.set_weights(whole.get_weights())
    output = run(case, layer)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    assert {weight.dtype for weight in layer.weights} <= {"float32"}
    # Bfloat16 has 8 bits: a relative error of 1/256 per operation.
    expected = ops.convert_to_numpy(run(case, whole))
    np.testing.assert_allclose(reference.array(output), expected, atol=0.1)


# Models of layers

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]


@pytest.fixture(params=POLICIES)
def policy(request):
    """Sets Keras' global policy during a test; its name."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


half_precision = ("mixed_bfloat16", "mixed_float16")
whole_models = pytest.mark.parametrize(
    "policy",
    ["float32", *(pytest.param(name, marks=pytest.mark.slow) for name in half_precision)],
    indirect=True,
)


def save_and_load(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def summary(model):
    lines = []
    model.summary(line_length=120, print_fn=lines.append)
    return "\n".join(map(str, lines))


def trained(model, *data, jit_compile=reference.FIT_COMPILES):
    """The model after updates that changed every weight.

    There are several updates, because in float16 Keras skips those that overflow.
    """
    before = [reference.array(weight) for weight in model.trainable_weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss, jit_compile=jit_compile)
    model.fit(*data, epochs=4, verbose=0)
    for weight, value in zip(model.trainable_weights, before, strict=True):
        assert np.abs(reference.array(weight) - value).max() > 1e-3, weight.path
    return model


@each_layer
def test_a_functional_model_of_a_layer_computes_the_same(case, policy, tmp_path):
    name, options, tensors, call_options = case
    inputs = [keras.Input((None, *x.shape[2:]), dtype=x.dtype) for x in tensors]
    layer = getattr(layers, name)(**options)
    model = keras.Model(inputs, output_of(layer(*inputs, **call_options)))
    assert model.output_shape[1:] == (None, 14)
    assert model.output.dtype == keras.config.dtype_policy().compute_dtype
    loaded = save_and_load(reference.randomize(model), tmp_path)
    # Dropout draws new noise in every call; the first call of each model has the same noise.
    expected = reference.array(model(tensors))
    np.testing.assert_array_equal(reference.array(loaded(tensors)), expected)
    if name != "Dropout":
        np.testing.assert_array_equal(reference.array(run(case, layer)), expected)


@pytest.mark.slow
@whole_models
def test_a_functional_model_of_all_layers_trains_and_is_saved(policy, tmp_path):
    parts = [
        layers.TokenEmbedding(7, 14),
        layers.SinusoidalPosition(),
        layers.HalfSinusoids(),
        layers.MarianPosition(),
        layers.OpenNMTPosition(),
        layers.FairseqPosition(),
        layers.LearnedPosition(5),
        layers.RotaryPosition(),
        layers.AlibiPosition(),
        layers.Dropout(0.1),
        layers.EncoderLayer(num_heads=2, key_dim=3, d_ff=11, dropout_rate=0.1),
        layers.FeedForward(d_ff=11),
        layers.LayerNorm(),
        layers.RMSNorm(),
        layers.Encoder(num_layers=2, num_heads=2, key_dim=3, d_ff=11, norm_first=True),
        layers.DecoderLayer(num_heads=2, key_dim=3, d_ff=11, has_cross_attention=False),
        layers.Decoder(num_layers=1, num_heads=2, key_dim=3, d_ff=11, has_cross_attention=False),
        layers.GatedFeedForward(d_ff=11),
        layers.SelfAttention(num_heads=2, key_dim=3),
        layers.LocalAttention(num_heads=2, key_dim=3),
        layers.StridedAttention(num_heads=2, key_dim=3),
        layers.LinearAttention(num_heads=2, key_dim=3),
        layers.SSRU(),
    ]
    of_one_input = {case.layer for case in CASES if len(case.inputs) == 1}
    # Their weights act on scores or logits, not on the output of the layer alone.
    of_one_input -= {"RelativePosition", "T5Position"}
    of_one_input -= {"BiasedEmbedding", "ZeroStartEmbedding"}
    assert {type(part).__name__ for part in parts} == of_one_input
    head = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(3)]
    ids = x = keras.Input((None,), dtype="int32")
    for part in [*parts, *head]:
        x = output_of(part(x))
    model = keras.Model(ids, x)
    assert "?" not in summary(model)
    trained(model, IDS, np.array([1, 2]))
    np.testing.assert_array_equal(
        reference.array(save_and_load(model, tmp_path)(IDS)), reference.array(model(IDS))
    )


def encoder_and_decoder():
    """(source, target) to logits, of layers only; targets have three ids."""
    source, target = keras.Input((None,), dtype="int32"), keras.Input((3,), dtype="int32")
    embedding, position = layers.TokenEmbedding(7, 14), layers.SinusoidalPosition()
    sizes = {"num_layers": 1, "num_heads": 2, "key_dim": 3, "d_ff": 11, "dropout_rate": 0.1}
    mask = layers.padding_mask(source)
    memory = layers.Encoder(**sizes)(position(embedding(source)), attention_mask=mask)
    x = position(embedding(target))
    x = layers.Decoder(**sizes)(x, memory.output, cross_attention_mask=mask)
    return keras.Model([source, target], keras.layers.Dense(7)(x.output))


@whole_models
def test_a_functional_encoder_and_decoder_trains_and_is_saved(policy, tmp_path):
    model = encoder_and_decoder()
    assert model.output_shape == (None, 3, 7)
    assert "?" not in summary(model)
    padded = np.pad(IDS, [(0, 0), (0, 2)])
    compiles = "auto" if policy == "float32" else reference.FIT_COMPILES  # one, as users have it
    trained(model, [padded, IDS], IDS, jit_compile=compiles)
    loaded = save_and_load(model, tmp_path)
    expected = reference.array(model([padded, IDS]))
    np.testing.assert_array_equal(reference.array(loaded([padded, IDS])), expected)
    # The graph contains the masks: neither padding nor future targets change the others.
    atol = {"float32": 1e-5}.get(policy, 0.1)
    np.testing.assert_allclose(reference.array(loaded([IDS, IDS])), expected, atol=atol)
    other = IDS.copy()
    other[:, 2] = 6
    found = reference.array(loaded([padded, other]))
    np.testing.assert_allclose(found[:, :2], expected[:, :2], atol=atol)
    assert np.abs(found[:, 2] - expected[:, 2]).max() > 0.1


def test_a_functional_model_of_layers_is_drawn():
    pytest.importorskip("pydot", reason="Keras draws with pydot")
    graph = keras.utils.model_to_dot(encoder_and_decoder(), show_shapes=True).to_string()
    for part in ("TokenEmbedding", "SinusoidalPosition", "Encoder", "Decoder"):
        assert part in graph


def test_a_functional_model_returns_attention_weights(policy, tmp_path):
    sizes = {"num_layers": 2, "num_heads": 2, "key_dim": 3, "d_ff": 11}
    inputs = [keras.Input((None, x.shape[2])) for x in (X, MEMORY)]
    decoder = layers.Decoder(**sizes)
    result = decoder(*inputs)
    outputs = [result.output, result.attention[-1], result.cross_attention[-1]]
    model = reference.randomize(keras.Model(inputs, outputs))
    assert model.output_shape == [(None, None, 14), (None, 2, None, None), (None, 2, None, None)]
    found = model([X, MEMORY])
    loaded = save_and_load(model, tmp_path)([X, MEMORY])
    for one, other in zip(found, loaded, strict=True):
        np.testing.assert_array_equal(reference.array(one), reference.array(other))
    if policy == "float32":
        mask = reference.causal_mask(X.shape[1])
        expected = [reference.stack(decoder, *pair, mask) for pair in zip(X, MEMORY, strict=True)]
        for number, weights in enumerate(found[1:], start=1):
            of_last_layer = [of_sentence[number][-1] for of_sentence in expected]
            np.testing.assert_allclose(reference.array(weights), of_last_layer, atol=1e-5)
