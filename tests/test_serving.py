"""The shapes that a compiled search is called with."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.serving import MOST_TOKENS, _in_buckets, compiled_shapes

LONGEST = 300


class Echo:
    """In place of a search: gives the source back as its translation, and notes its shape."""

    def __init__(self):
        self.shapes = set()

    def __call__(self, source: tf.Tensor) -> Hypotheses:
        self.shapes.add(tuple(source.shape))
        lengths = tf.reduce_sum(tf.cast(source != 0, tf.int32), axis=1, keepdims=True)
        numbers = tf.cast(lengths, tf.float32)
        return Hypotheses(source[:, None], lengths, numbers, numbers)


def random_source(rows: int, length: int) -> np.ndarray:
    """Rows of unequal length, the first of full length."""
    rng = np.random.default_rng(rows)
    source = rng.integers(1, 99, (rows, length), np.int32)
    lengths = rng.integers(1, length + 1, (rows, 1))
    lengths[:1] = length
    return np.where(np.arange(length) < lengths, source, 0)


@pytest.mark.parametrize("rows", [0, 1, 2, 4, 5, 31, 32, 33, 100])
@pytest.mark.parametrize("length", [1, 8, 9, 64, 200, LONGEST])
def test_any_batch_is_searched_in_compiled_shapes_and_put_together(rows, length):
    echo = Echo()
    source = random_source(rows, length)
    found = _in_buckets(echo, tf.constant(source), LONGEST)
    assert echo.shapes <= set(compiled_shapes(LONGEST))
    np.testing.assert_array_equal(found.ids[:, 0, :length], source)
    assert not found.ids[:, 0, length:].numpy().any()
    np.testing.assert_array_equal(found.lengths[:, 0], (source != 0).sum(axis=1))


def test_every_compiled_shape_is_its_own_bucket():
    for shape in compiled_shapes(LONGEST):
        echo = Echo()
        _in_buckets(echo, tf.constant(random_source(*shape)), LONGEST)
        assert echo.shapes == {shape}


@pytest.mark.parametrize("longest", [1, 8, 100, 1024, 10_000])
def test_compiled_shapes_are_few_and_small(longest):
    shapes = compiled_shapes(longest)
    assert len(shapes) <= 40
    assert max(length for _, length in shapes) == longest
    assert all(rows * length <= MOST_TOKENS or rows == 1 for rows, length in shapes)
