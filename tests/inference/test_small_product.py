"""The product of small matrices in decoding steps."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import kernels
from tf_transformer.inference.small_product import for_steps, small_product


@pytest.mark.parametrize("transpose_y", [False, True])
def test_it_is_the_product_of_matrices(transpose_y):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 1, 5)), rng.normal(size=(2, 3, 5, 7))
    given = y.swapaxes(2, 3) if transpose_y else y
    np.testing.assert_allclose(small_product(x, given, transpose_y), x @ y)


def test_onednn_does_not_take_the_products_of_one_query():
    def attend(query, key, value):
        return for_steps(kernels.TUNED).attention(query, key, value).heads

    shapes = [tf.TensorSpec((None, 2, length, 4)) for length in (1, None, None)]
    graph = tf.function(attend, shapes, autograph=False).get_concrete_function().graph
    products = [op.type for op in graph.get_operations() if "MatMul" in op.type]
    assert products == ["BatchMatMulV3"] * 2


def test_other_sets_stay_as_they_are():
    assert for_steps(kernels.PLAIN) is kernels.PLAIN
    assert for_steps(kernels.XLA) is kernels.XLA
