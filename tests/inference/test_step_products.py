"""Products of attention in decoding steps."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import kernels
from tf_transformer.inference.step_products import for_steps, product


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_it_is_the_product_of_matrices(dtype, rows, transposed):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, size) for size in ((2, 3, rows, 5), (2, 3, 5, 7)))
    given = b.swapaxes(2, 3) if transposed else b
    result = product(tf.cast(a, dtype), tf.cast(given, dtype), transposed)
    np.testing.assert_array_equal(tf.cast(result, "float32"), a @ b)


@pytest.mark.parametrize("queries", [1, 4])
def test_onednn_takes_none_of_the_products_of_a_step(queries):
    def attend(query, key, value):
        return for_steps().attention(query, key, value).heads

    shapes = [tf.TensorSpec((None, 2, length, 4)) for length in (queries, None, None)]
    graph = tf.function(attend, shapes, autograph=False).get_concrete_function().graph
    products = [op.type for op in graph.get_operations() if "MatMul" in op.type]
    assert products == ["BatchMatMulV3"] * 2


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("gather", [kernels.PLAIN.gather, for_steps().gather])
def test_gather_gives_the_slices_of_each(axis, gather):
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    indices = np.array([[2, 0, 2], [1, 1, 0]], np.int32)
    slices = [np.take(of_one, row, axis - 1) for of_one, row in zip(values, indices, strict=True)]
    np.testing.assert_array_equal(gather(values, indices, axis=axis, batch_dims=1), slices)


@pytest.mark.parametrize("chosen", [kernels.PLAIN, kernels.XLA], ids=["plain", "xla"])
def test_another_set_stays_as_it_is(chosen):
    with kernels.use(chosen):
        assert for_steps() is chosen
