"""Layers take the options that they read, by name, and refuse all other options."""

import dataclasses
import inspect
import re
import typing

import keras
import numpy as np
import pytest
import reference

from tf_transformer import ModelConfig, Transformer, layers
from tf_transformer.config import LayerConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.configured import FIELDS, ConfiguredLayer
from tf_transformer.layers.variants import FEED_FORWARD, SELF_ATTENTION

X = np.random.default_rng(1).normal(size=(2, 3, 8)).astype("float32")
PARTS = [getattr(layers, name) for name in layers.__all__]
LAYERS = [
    x
    for x in PARTS
    if isinstance(x, type) and issubclass(x, ConfiguredLayer) and x is not layers.Attention
]
SIZES = {"num_heads": 2, "key_dim": 4, "value_dim": 4, "d_ff": 5, "num_layers": 1}
# A valid value of each field that differs from its default.
OTHER = {
    field.name: {int: 2, float: 0.2, bool: not field.default}.get(type(field.default))
    for field in dataclasses.fields(ModelConfig)
} | {
    **{"architecture": "luong", "position": "rotary", "attention": "local", "activation": "gelu"},
    "decoder_attention": "local",
    **{"normalization": "rms_norm", "tie_embeddings": "none"},
}

each_layer = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)


WITH_MEMORY = (layers.Residual, layers.CrossAttention, layers.DecoderLayer, layers.Decoder)
SHORT = {  # arguments of single layers that have shorter names than the fields
    **dict.fromkeys(("attention_bias",), "use_bias"),
    **dict.fromkeys(("attention_dropout_rate", "feed_forward_dropout_rate"), "dropout_rate"),
}


class Recorded(LayerConfig):
    """A configuration that records the fields which are read from it."""

    def __getattribute__(self, name):
        if name in LayerConfig.__match_args__:
            READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()


def fields_read(layer, **options):
    """The fields that a layer and its parts read from their configuration."""
    config = Recorded(**SIZES, **options)
    READ.clear()  # the checks of the configuration have read them all
    made = layer(config)
    inputs = [X, X] if layer in WITH_MEMORY else [X]
    made(*inputs)
    if layer in (layers.Encoder, layers.Decoder):
        made(*inputs, training=True)
    return set(READ)


@each_layer
def test_a_layer_reads_the_fields_that_it_names(layer):
    kinds = set(SELF_ATTENTION)
    if layer in (layers.EncoderLayer, layers.Encoder):
        kinds.remove("ssru")  # it reads from left to right
    variants = [{"norm_first": True}, *({"attention": name} for name in sorted(kinds))]
    variants += [{"activation": name} for name in FEED_FORWARD]
    if layer in FEED_FORWARD.values():
        variants = [{}]
    found = set().union(*(fields_read(layer, **options) for options in variants))
    if "key_dim" in found:
        found.add("d_model")  # the defaults of the sizes of heads
    if layer is layers.GatedFeedForward:
        found.add("activation")  # taken with its own value alone
    assert found == layer.reads


@each_layer
def test_a_constructor_tells_its_arguments(layer):
    """By name, or by the keys of the record of its options."""
    hint = typing.get_type_hints(layer.__init__).get("options")
    keys = set(typing.get_args(hint)[0].__annotations__) if typing.get_args(hint) else set()
    told = arguments(layer) | keys
    assert {
        name for name in layer.reads - {"d_model"} if not {name, SHORT.get(name)} & told
    } == set()


def arguments(layer) -> set[str]:
    """The named arguments of the constructors of a layer and of its base classes."""
    makers = [cls.__init__ for cls in layer.__mro__ if issubclass(cls, ConfiguredLayer)]
    return {name for maker in makers for name in inspect.signature(maker).parameters}


@pytest.mark.parametrize("field", sorted(FIELDS))
@each_layer
def test_a_layer_refuses_the_fields_that_it_does_not_read(layer, field):
    if field in layer.reads:
        if layer is not layers.GatedFeedForward or field != "activation":
            made = layer(**sizes_of(layer) | {field: OTHER[field]})
            assert getattr(made.config, field) == OTHER[field]
        return
    if field in arguments(layer) and field != "position":
        return  # the short name of another field
    message = rf"^{layer.__name__} does not read {field}\. .* reads "
    if field == "position" and layer in (layers.Encoder, layers.Decoder):
        message = r"^expected position as .* such as RotaryPosition\(\), got 'rotary'"
    with pytest.raises(ValueError, match=message):
        layer(**{field: OTHER[field]})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.Encoder(6), "Encoder: expected config as a ModelConfig or .* got 6"),
        (
            lambda: layers.FeedForward({"num_head": 2}),
            "FeedForward: a configuration has no num_head",
        ),
        (
            lambda: Transformer(11, LayerConfig()),
            "expected config as a ModelConfig or a dict, got L",
        ),
        (lambda: layers.SelfAttention(num_heads=0), "SelfAttention: num_heads must be positive"),
        (
            lambda: layers.CrossAttention(num_heads=2)(X),
            "attends to a second sequence, value, but got none",
        ),
    ],
)
def test_an_argument_of_another_kind_is_a_clear_error(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def sizes_of(layer):
    """The sizes that a layer reads."""
    return {name: size for name, size in SIZES.items() if name in layer.reads}


def test_the_error_lists_what_the_layer_reads():
    expected = (
        "FeedForward does not read num_layers, position. Leave it out; the layer reads activation, "
        "d_ff, feed_forward_dropout_rate."
    )
    with pytest.raises(InputError) as error:
        layers.FeedForward(num_layers=7, position="rotary")
    assert str(error.value) == expected


@pytest.mark.parametrize("layer", [layers.SelfAttention, layers.CrossAttention, layers.Encoder])
def test_checks_concern_what_was_given(layer):
    with pytest.raises(InputError, match=r"num_heads=3 needs key_dim, the size of a head: "):
        layer(num_heads=3)
    assert layer(num_heads=3, key_dim=5).config.value_dim == 5
    assert layer(num_heads=3, d_model=9).config.key_dim == 3  # odd: no check of sinusoids
    with pytest.raises(InputError, match=r"d_model \(8\) must be a multiple of .*num_heads \(3\)"):
        layer(num_heads=3, d_model=8)


@each_layer
def test_a_record_of_options_may_have_all_fields(layer):
    record = dataclasses.asdict(ModelConfig(d_model=8, num_heads=2, position="rotary"))
    for config in (record, ModelConfig(**record)):
        assert layer(config).config == ModelConfig(**record).decoder


@each_layer
def test_options_of_an_earlier_version_that_had_no_effect_are_ignored(layer):
    sizes = sizes_of(layer)
    found = layer.from_config(sizes | {"max_length": 5, "source_end": False}).config
    assert found == layer(**sizes).config


ENCODINGS = [layers.RotaryPosition(), layers.AlibiPosition(), layers.T5Position(num_heads=2)]


@pytest.mark.parametrize("stack", [layers.Encoder, layers.Decoder])
@pytest.mark.parametrize("position", ENCODINGS, ids=lambda x: type(x).__name__)
def test_a_stack_keeps_its_position_encoding_in_files_and_clones(stack, position, tmp_path):
    """`position` is an argument of a stack, and a field of the configuration that none reads."""
    memory = {"has_cross_attention": False} if stack is layers.Decoder else {}
    position = type(position).from_config(position.get_config())
    layer = stack(num_layers=1, num_heads=2, key_dim=4, d_ff=8, position=position, **memory)
    given = keras.Input((None, 8))
    model = keras.Model(given, layer(given).output)
    model.save(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for other in (keras.saving.load_model(tmp_path / "model.keras"), clone):
        np.testing.assert_array_equal(reference.array(other(X)), reference.array(model(X)))


def test_gated_feed_forward_has_one_activation():
    assert layers.GatedFeedForward(activation="swiglu", d_ff=5).config.d_ff == 5
    with pytest.raises(InputError, match="activation must be one of swiglu, got 'gelu'"):
        layers.GatedFeedForward(activation="gelu")


WRONG = {
    "FeedForward: activation must be one of relu, gelu, swish, got 'tanh'": {"activation": "tanh"},
    "FeedForward: d_ff must be positive, got 0": {"d_ff": 0},
    "FeedForward: feed_forward_dropout_rate must be at least 0 and below 1, got 1.0": {
        "dropout_rate": 1.0
    },
    "FeedForward: d_ff must be an integer, got 'many'": {"d_ff": "many"},
}


@pytest.mark.parametrize(("message", "options"), WRONG.items(), ids=WRONG)
def test_a_wrong_value_is_an_error_that_says_what_is_allowed(message, options):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        layers.FeedForward(**options)


def test_a_wrong_value_of_a_layer_of_parts_is_an_error_that_names_the_layer():
    message = "EncoderLayer: activation must be one of relu, gelu, swish, swiglu, got 'tanh'"
    with pytest.raises(InputError, match=message):
        layers.EncoderLayer(activation="tanh")
