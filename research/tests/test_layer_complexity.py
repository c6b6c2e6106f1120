"""research/layer_complexity: paths and exponents that are known."""

import keras
import pytest

from research import layer_complexity
from research.layer_complexity import LAYERS, PATH_SIZES, fit, measured, path_length


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX states memory")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("self-attention", 1),
        ("recurrent", 15),  # steps from the first of 16 positions to the last
        ("convolutional", 8),  # ⌈15 / 2⌉: a convolution of width 5 reaches 2 positions
        ("self-attention (restricted)", 4),  # ⌈15 / 4⌉
    ],
)
def test_path_lengths_by_hand(name, expected):
    assert path_length(LAYERS[name].compute, PATH_SIZES._replace(n=16)) == expected


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX states memory")
def test_memory_of_self_attention_grows_with_the_square_of_the_positions(monkeypatch):
    monkeypatch.setattr(layer_complexity, "REPEATS", 1)
    sizes = PATH_SIZES._replace(n=256)
    small, large = (measured("self-attention", sizes._replace(n=n)) for n in (256, 512))
    assert 3 < large["memory_mb"] / small["memory_mb"] < 5


def test_exponents_of_powers_are_found():
    rows = [
        {"layer": "recurrent", "changed": "d", "d": d, "seconds": 3 * d**2, "memory_mb": 5 * d}
        for d in (4, 8, 16)
    ]
    found = fit("recurrent", "d", rows)
    assert (found["exponent of time"], found["exponent of memory"]) == (2, 1)
