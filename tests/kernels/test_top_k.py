"""Top k and ranks of tokens against NumPy's stable sort, and how much is sorted."""

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.decoding.problem import NEG_INF
from tf_transformer.kernels import PLAIN, TUNED, XLA
from tf_transformer.kernels.top_k import rank_tokens, top_k, xla_top_k
from tf_transformer.machine.thresholds import LARGEST_BLOCK, SMALLEST_BLOCK

# Rows that are cut into blocks, whose size must divide the row's, and two that are not.
SIZES = [8000, 7000, 2096, 640, 37, 131]
FORMS = {"plain": PLAIN, "tuned": TUNED, "xla": XLA}

each_form = pytest.mark.parametrize("kernels", FORMS.values(), ids=FORMS)
each_k = pytest.mark.parametrize("k", [1, 3, 11])
each_size = pytest.mark.parametrize("size", SIZES)


def check(form, values: np.ndarray, k: int):
    """Exact values and indices; of equal values the one with the lower index comes first."""
    expected = np.argsort(-values, axis=-1, kind="stable")[..., :k]
    best, indices = map(ops.convert_to_numpy, form(ops.convert_to_tensor(values), k))
    assert indices.dtype == "int32"
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(values, expected, axis=-1))


def random_values(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).normal(size=shape).astype("float32")


@each_form
@each_k
@each_size
def test_top_k_equals_numpy(size, k, kernels):
    check(kernels.top_k, random_values(3, 5, size), k)


@each_form
@each_k
@each_size
def test_of_equal_values_the_lower_index_comes_first(size, k, kernels):
    random = np.random.default_rng(size)
    values = [random.integers(0, kinds, (4, size)) for kinds in (1, 2, 4, 40)]
    check(kernels.top_k, np.float32(values), k)


@each_form
@each_k
@each_size
def test_impossible_values_come_last(size, k, kernels):
    """Rows with a few possible values at random places, and one row without any."""
    values = random_values(3, 5, size)
    possible = np.random.default_rng(size).random(values.shape) < 4 / size
    possible[0, 0] = False
    for impossible in (-np.inf, NEG_INF):
        check(kernels.top_k, np.where(possible, values, np.float32(impossible)), k)


@each_form
def test_all_values_of_a_row_may_be_sorted(kernels):
    for size in (37, 64):
        check(kernels.top_k, random_values(3, size), size)


@each_form
@pytest.mark.parametrize("shape", [(8000,), (2, 8000), (2, 1, 3, 8000)])
def test_top_k_takes_any_leading_axes(shape, kernels):
    check(kernels.top_k, random_values(*shape), 5)


@each_form
@pytest.mark.parametrize("k", [1, 5, 20])
@each_size
def test_tokens_of_all_hypotheses_of_a_sentence_are_ranked_together(size, k, kernels):
    logits = random_values(3, 4, size)
    totals = -np.random.default_rng(k).random((3, 4)).astype("float32")
    log_p = np.log(reference.softmax(logits.astype("float64"))) + totals[..., None]
    check_ranks(kernels, logits, totals, log_p, k)


@each_form
@pytest.mark.parametrize("k", [1, 5, 20])
@each_size
def test_of_equal_extensions_that_of_the_first_hypothesis_comes_first(size, k, kernels):
    """Four hypotheses with the same logits; logits and totals have few different values."""
    random = np.random.default_rng(size + k)
    logits = np.repeat(random.integers(0, 4, (3, 1, size)).astype("float32"), 4, axis=1)
    totals = -random.integers(0, 3, (3, 4)).astype("float32")
    check_ranks(kernels, logits, totals, logits + totals[..., None], k)


def check_ranks(kernels, logits, totals, expected, k):
    """The order is that of `expected` (3, 4, V), values are totals + log softmax(logits)."""
    order = np.argsort(-expected.reshape(3, -1), axis=-1, kind="stable")[:, :k]
    log_p = np.log(reference.softmax(logits.astype("float64"))) + totals[..., None]
    tensors = map(ops.convert_to_tensor, (logits, totals))
    values, indices = map(ops.convert_to_numpy, kernels.rank_tokens(*tensors, k))
    assert indices.dtype == "int32"
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(
        values, np.take_along_axis(log_p.reshape(3, -1), order, axis=-1), rtol=1e-5, atol=1e-5
    )


@pytest.fixture
def sorted_sizes(monkeypatch) -> list[int]:
    """The number of values of a row, for each call of Keras' top k."""
    if keras.backend.backend() == "torch":
        pytest.skip("sorts with argsort there")
    sizes = []
    of_keras = ops.top_k

    def recording(values, k):
        sizes.append(values.shape[-1])
        return of_keras(values, k)

    monkeypatch.setattr(ops, "top_k", recording)
    return sizes


@pytest.mark.parametrize("form", [top_k, xla_top_k])
@pytest.mark.parametrize(("size", "k"), [(8000, 11), (7000, 3)])
def test_a_long_row_is_never_sorted_whole(sorted_sizes, form, size, k):
    form(ops.zeros((2, size)), k)
    assert max(sorted_sizes) <= max(size // SMALLEST_BLOCK, k * LARGEST_BLOCK)


def test_rows_of_a_group_are_never_sorted_whole(sorted_sizes):
    rank_tokens(ops.zeros((2, 4, 8000)), ops.zeros((2, 4)), 20)
    assert max(sorted_sizes) <= max(4 * 8000 // SMALLEST_BLOCK, 20 * LARGEST_BLOCK)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="graphs of TensorFlow")
@pytest.mark.parametrize("form", [top_k, xla_top_k])
def test_a_graph_with_unknown_sizes_gives_the_same_results(form):
    import tensorflow as tf

    spec = tf.TensorSpec((None, None, 8000))
    graph = tf.function(lambda values: form(values, 11), [spec], jit_compile=form is xla_top_k)
    values = random_values(3, 5, 8000)
    for one, other in zip(graph(values), top_k(values, 11), strict=True):
        np.testing.assert_array_equal(one, other)
