"""Layers take the options that they read, by name, and refuse all other options."""

import dataclasses

import keras
import numpy as np
import pytest
import reference

from tf_transformer import ModelConfig, layers
from tf_transformer.errors import InputError
from tf_transformer.layers import configured
from tf_transformer.layers.configured import FIELDS, ConfiguredLayer
from tf_transformer.layers.variants import FEED_FORWARD, SELF_ATTENTION

X = np.random.default_rng(1).normal(size=(2, 3, 8)).astype("float32")
PARTS = [getattr(layers, name) for name in layers.__all__]
LAYERS = [x for x in PARTS if isinstance(x, type) and issubclass(x, ConfiguredLayer)]
SIZES = {"num_heads": 2, "key_dim": 4, "value_dim": 4, "d_ff": 5, "num_layers": 1}
# A valid value of each field that differs from its default.
OTHER = {
    field.name: {int: 2, float: 0.2, bool: not field.default}.get(type(field.default))
    for field in dataclasses.fields(ModelConfig)
} | {
    **{"architecture": "luong", "position": "rotary", "attention": "local", "activation": "gelu"},
    **{"normalization": "rms_norm", "tie_embeddings": "none"},
}

each_layer = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)


class Recorded:
    """A configuration that records the fields which are read from it."""

    def __init__(self, config, read):
        self._config, self._read = config, read

    @property
    def decoder(self):
        return self

    def __getattr__(self, name):
        self._read.add(name)
        return getattr(self._config, name)


def fields_read(layer, monkeypatch, **options):
    """The fields that a layer and its parts read from their configuration."""
    config = dataclasses.replace(ModelConfig(dropout_rate=0.0), **SIZES, **options).decoder
    with monkeypatch.context() as patch:
        patch.setattr(configured, "as_config", lambda config, **fields: config)
        recorded = Recorded(config, set())
        made = layer(recorded)
        made(X, X) if layer in (layers.Residual, layers.DecoderLayer, layers.Decoder) else made(X)
        if layer in (layers.Encoder, layers.Decoder):
            made.run(X, *([X] if layer is layers.Decoder else []), training=True)
    return recorded._read


@each_layer
def test_a_layer_reads_the_fields_that_it_names(layer, monkeypatch):
    variants = [{"norm_first": True}, *({"attention": name} for name in SELF_ATTENTION)]
    variants += [{"activation": name} for name in FEED_FORWARD]
    if layer in FEED_FORWARD.values():
        variants = [{}]
    found = set().union(*(fields_read(layer, monkeypatch, **options) for options in variants))
    if "key_dim" in found:
        found.add("d_model")  # the defaults of the sizes of heads
    if layer is layers.GatedFeedForward:
        found.add("activation")  # taken with its own value alone
    assert found == layer.reads


@pytest.mark.parametrize("field", sorted(FIELDS))
@each_layer
def test_a_layer_refuses_the_fields_that_it_does_not_read(layer, field):
    short = [name for name, full in layer.short_names.items() if full == field or name == field]
    if field in layer.reads or short:
        if layer is not layers.GatedFeedForward or field != "activation":
            name, value = (short or [field])[0], OTHER[field]
            made = layer(**sizes_of(layer) | {name: value})
            assert getattr(made.config, layer.short_names.get(name, name)) == value
        return
    message = rf"^{layer.__name__} does not read {field}\. .* reads "
    if field == "position" and layer in (layers.Encoder, layers.Decoder):
        message = r"^expected position as .* such as RotaryPosition\(\), got 'rotary'"
    with pytest.raises(ValueError, match=message):
        layer(**{field: OTHER[field]})


def sizes_of(layer):
    """The sizes that a layer reads."""
    return {name: size for name, size in SIZES.items() if name in layer.reads}


def test_the_error_lists_what_the_layer_reads():
    expected = (
        "FeedForward does not read num_layers, position. Leave it out; the layer reads activation, "
        "d_ff, feed_forward_dropout_rate (short: dropout_rate)."
    )
    with pytest.raises(InputError) as error:
        layers.FeedForward(num_layers=7, position="rotary")
    assert str(error.value) == expected


@pytest.mark.parametrize("layer", [layers.MultiHeadAttention, layers.Encoder])
def test_checks_concern_what_was_given(layer):
    with pytest.raises(InputError, match=r"with num_heads=3 needs key_dim, the size of a head: "):
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
    model = keras.Model(given, layer(given))
    model.save(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for other in (keras.saving.load_model(tmp_path / "model.keras"), clone):
        np.testing.assert_array_equal(reference.array(other(X)), reference.array(model(X)))


def test_gated_feed_forward_has_one_activation():
    assert layers.GatedFeedForward(activation="swiglu", d_ff=5).config.d_ff == 5
    with pytest.raises(InputError, match="has the activation swiglu, got 'gelu'"):
        layers.GatedFeedForward(activation="gelu")
