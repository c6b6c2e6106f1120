"""The blocked top k against NumPy's stable sort."""

import keras
import numpy as np
import pytest
from keras import ops

from tf_transformer.decoding.hypotheses import NEG_INF
from tf_transformer.kernels.top_k import Blocks, top_k

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
@pytest.mark.parametrize("impossible", [-np.inf, NEG_INF], ids=["infinite", "never"])
def test_what_is_impossible_comes_last(size, k, impossible):
    """Rows with few possible values, at random places, and with none."""
    values = random_values(size)
    possible = np.random.default_rng(size).random(values.shape) < 4 / size
    possible[0, 0] = False
    check(np.where(possible, values, np.float32(impossible)), k)


@pytest.mark.parametrize("kinds", [2, 40, None], ids="kinds={}".format)
@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("size", SIZES)
def test_rows_of_a_group_compete(size, k, kinds):
    """Each row with two terms of its own, added in turn: sums round as they do in NumPy."""
    random = np.random.default_rng(size + k)
    values = (
        random.normal(size=(3, 4, size))
        if kinds is None
        else random.integers(0, kinds, (3, 4, size))
    )
    values = values.astype("float32")
    terms = random.integers(0, 3, (2, 3, 4)).astype("float32") * np.float32([[[1e3]], [[0.1]]])
    sums = ((values + terms[0, ..., None]) + terms[1, ..., None]).reshape(3, -1)
    expected = np.argsort(-sums, axis=-1, kind="stable")[:, :k]
    for compiled in (False, True):
        found = Blocks.of(ops.convert_to_tensor(values), k).top_k(k, tuple(terms), compiled)
        best, indices = map(ops.convert_to_numpy, found)
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(best, np.take_along_axis(sums, expected, axis=-1))


@pytest.mark.parametrize("size", [37, 64])
def test_all_of_a_row_are_sorted(size):
    check(random_values(size), size)


@pytest.mark.parametrize("shape", [(8000,), (2, 8000), (2, 1, 3, 8000)])
def test_any_leading_axes(shape):
    check(np.random.default_rng(1).normal(size=shape).astype("float32"), 5)


@pytest.fixture
def sorted_sizes(monkeypatch) -> list[int]:
    """How many values a row had, in each call of Keras' top k."""
    sizes = []
    of_keras = ops.top_k

    def recording(values, k):
        sizes.append(values.shape[-1])
        return of_keras(values, k)

    monkeypatch.setattr(ops, "top_k", recording)
    return sizes


@pytest.mark.parametrize(
    ("size", "k", "compiled", "widest"),
    [(8000, 11, False, 11 * 64), (8000, 11, True, 11 * 16), (7000, 3, True, 3 * 56)],
)
def test_a_long_row_is_never_sorted_whole(sorted_sizes, size, k, compiled, widest):
    top_k(ops.zeros((2, size)), k, compiled)
    assert max(sorted_sizes) == widest


def test_rows_of_a_group_are_never_sorted_whole(sorted_sizes):
    Blocks.of(ops.zeros((2, 4, 8000)), 20).top_k(20)
    assert sorted_sizes == [4 * 125, 20 * 64]


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
