"""Functions with a gradient of their own; `test_pairs.py` compares those gradients."""

import numpy as np
import reference

from tf_transformer.kernels.gradient import plain_matmul_transposed, with_gradient


def test_outputs_and_their_gradients_keep_their_order():
    @with_gradient
    def double_and_triple(x, y):
        return (2 * x, 3 * y), lambda by_x, by_y: (2 * by_x, 3 * by_y)

    def weighted(x, y):
        doubled, tripled = double_and_triple(x, y)
        return 5 * doubled + 7 * tripled

    assert reference.gradients(weighted, np.float32(1), np.float32(2)) == [10, 21]


def test_matmul_transposed_worked_by_hand():
    product = plain_matmul_transposed(np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]]))
    np.testing.assert_array_equal(reference.array(product), [[1 * 3 + 2 * 4, 1 * 5 + 2 * 6]])
