"""Micro-batches: every row is processed once, within the limits, and returned in its place."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.inference.micro_batches import (
    compiled_shapes,
    max_compiled_rows,
    pad_to_shape,
    run_in_micro_batches,
)
from tf_transformer.machine.thresholds import COMPILED_BATCH_TOKENS

LONGEST = 300


class Doubled:
    """A function of rows that doubles their lengths and records each micro-batch."""

    def __init__(self, lengths: np.ndarray):
        self.lengths = lengths
        self.micro_batches = []

    def __call__(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        lengths = self.lengths[rows.numpy()]
        self.micro_batches.append(lengths.tolist())
        return tf.constant(2 * lengths), tf.constant([[str(n), "x"] for n in lengths])


def random_lengths(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 20, count, np.int32)


@pytest.mark.parametrize("count", [0, 1, 2, 31, 100])
def test_every_row_is_processed_once_and_returned_in_its_place(count):
    lengths = random_lengths(count)
    function = Doubled(lengths)
    of_none = tf.fill([count], -1), tf.fill([count, 2], "")
    doubled, texts = run_in_micro_batches(
        function, tf.constant(lengths), lambda n: tf.maximum(40 // n, 1), of_none
    )
    np.testing.assert_array_equal(doubled, np.where(lengths > 0, 2 * lengths, -1))
    assert texts[:, 0].numpy().tolist() == [str(n).encode() if n else b"" for n in lengths]
    assert sum(map(len, function.micro_batches)) == (lengths > 0).sum()
    for micro_batch in function.micro_batches:
        assert len(micro_batch) <= max(40 // max(micro_batch), 1)
        assert micro_batch == sorted(micro_batch, reverse=True)


@pytest.mark.parametrize("count", [0, 1, 31])
def test_rows_of_two_kinds_share_no_micro_batch(count):
    lengths, is_second = random_lengths(count), random_lengths(count) % 3 == 0
    rows = []

    def record(batch: tf.Tensor) -> tuple[tf.Tensor]:
        rows.append(batch.numpy().tolist())
        return (tf.gather(lengths, batch),)

    nothing = (tf.zeros([count], tf.int32),)
    run_in_micro_batches(record, tf.constant(lengths), lambda n: 40 // n, nothing, is_second)
    kinds = [set(is_second[batch]) for batch in rows]
    assert kinds == sorted(kinds, key=max)  # all of the first kind, then all of the second
    assert all(len(kind) == 1 for kind in kinds)
    assert sorted(row for batch in rows for row in batch) == np.flatnonzero(lengths).tolist()


def test_micro_batches_are_as_large_as_allowed():
    function = Doubled(np.full(10, 5, np.int32))
    of_none = (tf.zeros(10, tf.int32), tf.fill([10, 2], ""))
    run_in_micro_batches(function, tf.fill([10], 5), lambda n: tf.constant(4), of_none)
    assert [len(micro_batch) for micro_batch in function.micro_batches] == [4, 4, 2]


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 31, 32])
@pytest.mark.parametrize("length", [1, 8, 9, 64, 200, LONGEST])
def test_a_micro_batch_is_padded_to_the_smallest_compiled_shape(rows, length):
    rows = min(rows, int(max_compiled_rows(tf.constant(length), LONGEST)))
    source = np.random.default_rng(rows).integers(1, 99, (rows, length), np.int32)
    padded = pad_to_shape(tf.constant(source), LONGEST).numpy()
    large_enough = [
        shape for shape in compiled_shapes(LONGEST) if shape[0] >= rows and shape[1] >= length
    ]
    assert padded.shape == min(large_enough, key=lambda shape: (shape[1], shape[0]))
    np.testing.assert_array_equal(padded[:rows, :length], source)
    assert padded.sum() == source.sum()


def test_a_compiled_shape_is_not_padded():
    for rows, length in compiled_shapes(LONGEST):
        assert pad_to_shape(tf.ones((rows, length), tf.int32), LONGEST).shape == (rows, length)
        assert rows <= max_compiled_rows(tf.constant(length), LONGEST)


@pytest.mark.parametrize("longest", [1, 8, 100, 1024, 10_000])
def test_compiled_shapes_are_few_and_small(longest):
    shapes = compiled_shapes(longest)
    assert len(shapes) <= 40
    assert max(length for _, length in shapes) == longest
    assert all(rows * length <= COMPILED_BATCH_TOKENS or rows == 1 for rows, length in shapes)
