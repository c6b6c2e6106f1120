"""The blocked top k against NumPy's stable sort."""

import keras
import numpy as np
import pytest
from keras import ops

from tf_transformer.decoding.hypotheses import NEVER
from tf_transformer.decoding.top_k import top_k

# Rows that fall into blocks of 64, 56, 16 and 64; one of a single block; and one of none.
SIZES = [8000, 7000, 2096, 640, 37, 131]


def check(values: np.ndarray, k: int):
    """Values and indices, equal values in the order of their indices, in both ways."""
    expected = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    for compiled in (False, True):
        found = top_k(ops.convert_to_tensor(values), k, compiled)
        best, indices = map(ops.convert_to_numpy, found)
        assert indices.dtype == "int32"
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(best, np.take_along_axis(values, expected, axis=-1))


def random_values(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(3, 5, size)).astype("float32")


@pytest.mark.parametrize("k", [1, 3, 11])
@pytest.mark.parametrize("size", SIZES)
def test_top_k_is_numpys(size, k):
    check(random_values(size), k)


@pytest.mark.parametrize("k", [1, 3, 11])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kinds", [1, 2, 4, 40])
def test_of_equal_values_the_lower_index_comes_first(size, k, kinds):
    random = np.random.default_rng(size + kinds)
    check(random.integers(0, kinds, (4, size)).astype("float32"), k)


@pytest.mark.parametrize("k", [1, 3, 11])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("impossible", [-np.inf, NEVER], ids=["infinite", "never"])
def test_what_is_impossible_comes_last(size, k, impossible):
    """Rows with few possible values, at random places, and with none."""
    values = random_values(size)
    possible = np.random.default_rng(size).random(values.shape) < 4 / size
    possible[0, 0] = False
    check(np.where(possible, values, np.float32(impossible)), k)


@pytest.mark.parametrize("size", [37, 64])
def test_all_of_a_row_are_sorted(size):
    check(random_values(size), size)


@pytest.mark.parametrize("shape", [(8000,), (2, 8000), (2, 1, 3, 8000)])
def test_any_leading_axes(shape):
    check(np.random.default_rng(1).normal(size=shape).astype("float32"), 5)


@pytest.mark.parametrize(
    ("size", "k", "compiled", "widest"),
    [(8000, 11, False, 11 * 64), (8000, 11, True, 11 * 16), (7000, 3, True, 3 * 56)],
)
def test_a_long_row_is_never_sorted_whole(monkeypatch, size, k, compiled, widest):
    sorted_sizes = []
    of_keras = ops.top_k

    def recording(values, k):
        sorted_sizes.append(values.shape[-1])
        return of_keras(values, k)

    monkeypatch.setattr(ops, "top_k", recording)
    top_k(ops.zeros((2, size)), k, compiled)
    assert max(sorted_sizes) == widest


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="graphs of TensorFlow")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_graph_with_unknown_sizes_gives_what_eager_gives(jit_compile):
    import tensorflow as tf

    spec = tf.TensorSpec((None, None, 8000))
    graph = tf.function(
        lambda v: top_k(v, 11, jit_compile), input_signature=[spec], jit_compile=jit_compile
    )
    values = random_values(8000)
    for one, other in zip(graph(values), top_k(values, 11), strict=True):
        np.testing.assert_array_equal(one, other)
