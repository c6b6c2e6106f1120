"""The product of int8 numbers, in the plain form."""

import numpy as np
import pytest
from keras import ops

from tf_transformer.kernels.int8_product import (
    LARGEST_INPUT,
    LARGEST_WEIGHT,
    plain_int8_product,
    quantize,
)

ROWS, SIZE, DEPTH = 5, 7, 300


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_it_is_the_product_of_the_rounded_numbers():
    x, matrix = normal(ROWS, DEPTH), normal(SIZE, DEPTH, seed=1)
    step, unit = (np.abs(a).max(1, keepdims=True) for a in (x, matrix))
    step, unit = step / np.float32(127), unit / np.float32(64)
    exact = np.rint(x / step).astype(int) @ np.rint(matrix / unit).astype(int).T
    integers, scales = map(ops.convert_to_numpy, quantize(matrix, LARGEST_WEIGHT))
    product = ops.convert_to_numpy(plain_int8_product(x, integers, 127 * scales[:, 0]))
    np.testing.assert_allclose(product, exact * step * unit.T, rtol=1e-6)
    # Rounding to 7 and 8 bits changes a sum of 300 products by about 1 %.
    np.testing.assert_allclose(product, x @ matrix.T, atol=0.03 * np.abs(x @ matrix.T).max())


def test_a_row_does_not_depend_on_the_other_rows():
    x, weights = normal(ROWS, DEPTH), np.arange(-64, 65, dtype=np.int8)
    matrix = np.random.default_rng(1).choice(weights, (SIZE, DEPTH))
    highest = np.full(SIZE, 1.27, np.float32)
    together = ops.convert_to_numpy(plain_int8_product(x, matrix, highest))
    alone = [ops.convert_to_numpy(plain_int8_product(row[None], matrix, highest)) for row in x]
    np.testing.assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize("largest", [LARGEST_WEIGHT, LARGEST_INPUT])
def test_the_largest_number_of_a_row_is_the_largest_integer(largest):
    integers, scales = map(ops.convert_to_numpy, quantize(normal(ROWS, DEPTH), largest))
    np.testing.assert_array_equal(np.abs(integers).max(1), largest)
    np.testing.assert_allclose(integers * scales, normal(ROWS, DEPTH), atol=scales.max() / 2)


def test_a_row_of_zeros_stays_zero():
    integers, scales = map(ops.convert_to_numpy, quantize(np.zeros((1, 3), np.float32), 127))
    assert not integers.any()
    assert np.isfinite(scales).all()


def test_pairs_of_products_fit_into_16_bits():
    """Processors without instructions for int8 shift x to 0 … 255, and add pairs in 16 bits."""
    assert 2 * 255 * LARGEST_WEIGHT < 2**15
