"""Sinusoids and learned positions by hand and against NumPy; `test_relative_position.py`
has the hooks for relative encodings.
"""

import math

import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.layers import (
    FairseqPosition,
    HalfSinusoids,
    LearnedPosition,
    MarianPosition,
    OpenNMTPosition,
    PositionEncoding,
    SinusoidalPosition,
    sinusoids,
)


def test_sinusoids_worked_by_hand():
    # Position 1 of four: sin 1, cos 1, sin 0.01, cos 0.01.
    encodings = ops.convert_to_numpy(sinusoids(np.array([0, 1]), 4))
    np.testing.assert_allclose(encodings, [[0, 1, 0, 1], [0.841, 0.540, 0.010, 1.000]], atol=5e-4)


def test_sinusoids_equal_the_formula():
    encodings = ops.convert_to_numpy(sinusoids(np.arange(50), 14))
    np.testing.assert_allclose(encodings, reference.sinusoids(50, 14), atol=1e-5)


def test_sinusoids_reach_beyond_the_positions_of_earlier_calls():
    layer = SinusoidalPosition()
    layer(np.zeros((1, 50, 6), "float32"))
    x = np.zeros((1, 5001, 6), "float32")
    last = ops.convert_to_numpy(layer(x))[0, 5000]
    angles = [5000 / 10_000 ** (2 * i / 6) for i in range(3)]
    expected = [f(angle) for angle in angles for f in (math.sin, math.cos)]
    np.testing.assert_allclose(last, expected, atol=2e-3)  # float32 angles of 5,000 radians


@pytest.mark.parametrize(
    ("layer", "first", "last_rate"),
    [
        (HalfSinusoids(), 0, 10_000 ** (-2 / 3)),
        (MarianPosition(), 0, 1e-4),
        (OpenNMTPosition(), 1, 1e-4),
        (FairseqPosition(), 2, 1e-4),
    ],
)
def test_halves_have_sines_and_then_cosines(layer, first, last_rate):
    """The three rates of six columns fall from 1 to the last rate."""
    angles = np.outer(np.arange(4) + first, [1, last_rate**0.5, last_rate])
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    encodings = ops.convert_to_numpy(layer(np.zeros((1, 4, 6), "float32")))
    np.testing.assert_allclose(encodings[0], expected, atol=1e-6)


def test_odd_d_model_is_an_error():
    with pytest.raises(ValueError, match=r"d_model must be even, got 5\."):
        sinusoids(np.arange(3), 5)


@pytest.mark.parametrize(
    "layer", [SinusoidalPosition(), LearnedPosition(max_length=11), FairseqPosition()]
)
def test_the_layer_adds_the_encodings_of_positions_from_0_on(layer):
    x = np.random.default_rng(1).normal(size=(2, 7, 6)).astype("float32")
    added = ops.convert_to_numpy(layer(x)) - x
    for positions in (np.arange(7), np.array([5, 0, 3])):
        encodings = ops.convert_to_numpy(layer.encodings(positions, 6))
        np.testing.assert_allclose(encodings, added[0, positions], atol=1e-6)


def test_the_base_class_encodes_nothing():
    x = np.random.default_rng(1).normal(size=(2, 3, 7, 6)).astype("float32")
    layer, positions = PositionEncoding(), np.arange(7)
    np.testing.assert_array_equal(layer(x[:, 0]), x[:, 0])
    np.testing.assert_array_equal(layer.rotate(x, positions), x)
    assert layer.bias(x, positions, positions[None]) is None


def test_learned_positions_are_rows_of_a_table():
    layer = LearnedPosition(max_length=3)
    layer.build((None, None, 2))
    layer.table.assign([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    output = layer(np.full((1, 2, 2), 10, "float32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(output), [[[11, 12], [13, 14]]])


def test_learned_positions_beyond_the_table_are_an_error():
    layer = LearnedPosition(max_length=5)
    layer(np.zeros((1, 5, 2), "float32"))
    with pytest.raises(ValueError, match="has 5 positions, but the sequence has 6") as error:
        layer(np.zeros((1, 6, 2), "float32"))
    assert "model.max_length" in str(error.value)
    assert "model.position=sinusoidal" in str(error.value)
