"""A model starts with the weights of a model of another depth: layers at even distances."""

import dataclasses
import types

import numpy as np
import pytest

from tf_transformer.config import Config, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.models.names import by_name
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.training.setup import initialize

CODEC = types.SimpleNamespace(size=lambda field: 20)
NARROW = ModelConfig(d_model=8, d_ff=12, num_heads=2)


def build(**options):
    config = Config(dataclasses.replace(NARROW, **options))
    return config, TRANSLATION.build_model(config, CODEC, "float32")


def origin(**options):
    """A run with random weights, and these weights by name."""
    config, model = build(**options)
    folder = types.SimpleNamespace(path="runs/origin")
    run = types.SimpleNamespace(config=config, folder=folder, model=lambda _: model)
    return run, {name: np.asarray(weight) for name, weight in by_name(model).items()}


@pytest.mark.parametrize(
    ("here", "there", "layers"),
    [
        *((1, 4, [0]), (2, 4, [0, 3]), (3, 5, [0, 2, 4]), (4, 4, [0, 1, 2, 3])),
        (6, 3, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_layers_at_even_distances(here, there, layers, capsys):
    run, theirs = origin(num_layers=there)
    config, model = build(num_encoder_layers=here, num_decoder_layers=here)
    assert initialize(model, config, run) == (here == there)
    said = f"encoder: {here} layers start as layers of the {there} of runs/origin"
    assert (said in capsys.readouterr().out) == (here != there)
    for name, weight in by_name(model).items():
        stack, _, rest = name.partition("/layer_")
        number, _, rest = rest.partition("/")
        name = f"{stack}/layer_{layers[int(number)]}/{rest}" if rest else name
        np.testing.assert_array_equal(weight, theirs[name])


def test_weights_without_a_counterpart_are_new():
    run, theirs = origin(num_layers=2)
    config, model = build(num_layers=2, num_decoder_layers=1, decoder_attention="linear")
    before = {name: np.asarray(weight) for name, weight in by_name(model).items()}
    assert not initialize(model, config, run)
    new = [
        name
        for name, weight in by_name(model).items()
        if np.array_equal(before[name], weight) and not np.array_equal(theirs.get(name), weight)
    ]
    assert new == [name for name in before if theirs.get(name) is None]


def test_an_encoder_of_another_width_is_an_error():
    config, model = build(d_ff=16)
    with pytest.raises(InputError, match="Both need an encoder with the same weights"):
        initialize(model, config, origin()[0])
