"""The product of int8 numbers as an operation of oneDNN."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.inference.onednn import int8_product, require_int8_product
from tf_transformer.kernels.int8_product import LARGEST_WEIGHT, plain_int8_product

SIZE, DEPTH = 40, 512


@pytest.fixture
def matrix():
    """Weights of which many are as large as possible, and the values of 127."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-LARGEST_WEIGHT, LARGEST_WEIGHT, (SIZE, DEPTH), np.int8, endpoint=True)
    weights[::2] = np.sign(weights[::2]) * LARGEST_WEIGHT
    highest = rng.uniform(0.1, 1, SIZE).astype(np.float32)
    return tf.Variable(weights), tf.Variable(highest)


def test_a_graph_gives_the_plain_product_for_any_number_of_rows(matrix):
    product = tf.function(
        lambda x: int8_product(x, *matrix), [tf.TensorSpec((None, DEPTH))], autograph=False
    )
    rng = np.random.default_rng(1)
    for rows in (1, 33, 4, 1):
        x = rng.normal(size=(rows, DEPTH)).astype(np.float32)
        x[0] = np.abs(x[0])
        expected = plain_int8_product(x, *(variable.numpy() for variable in matrix))
        np.testing.assert_allclose(product(x), expected, rtol=1e-5, atol=1e-5)


def test_outside_of_graphs_it_is_the_plain_form(matrix):
    x = np.ones((2, DEPTH), np.float32)
    np.testing.assert_array_equal(int8_product(x, *matrix), plain_int8_product(x, *matrix))


@pytest.mark.parametrize(
    "variables",
    [
        {"ONEDNN_MAX_CPU_ISA": "AVX2"},  # no instructions for int8: sums of pairs in 16 bits
        {"TF_ENABLE_ONEDNN_OPTS": "0"},
    ],
)
def test_it_is_exact_on_other_processors_and_without_other_operations_of_onednn(variables):
    program = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    test = f"{__file__}::test_a_graph_gives_the_plain_product_for_any_number_of_rows"
    subprocess.run([*program, test], env=os.environ | variables, check=True)


def test_this_machine_has_the_product():
    require_int8_product()
