"""Batches of any size in pieces: every row once, in its place, within limits."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.export.micro_batches import (
    MOST_TOKENS,
    compiled_shapes,
    in_pieces,
    most_compiled_rows,
    padded_to_shape,
)

LONGEST = 300


class Doubled:
    """In place of a search: doubles the rows' lengths, and notes which rows it was given."""

    def __init__(self, lengths: np.ndarray):
        self.lengths = lengths
        self.pieces = []

    def __call__(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        lengths = self.lengths[rows.numpy()]
        self.pieces.append(lengths.tolist())
        return tf.constant(2 * lengths), tf.constant([[str(n), "x"] for n in lengths])


def random_lengths(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 20, count, np.int32)


@pytest.mark.parametrize("count", [0, 1, 2, 31, 100])
def test_every_row_is_worked_on_once_and_put_in_its_place(count):
    lengths = random_lengths(count)
    work = Doubled(lengths)
    of_none = tf.fill([count], -1), tf.fill([count, 2], "")
    doubled, texts = in_pieces(
        work, tf.constant(lengths), lambda n: tf.maximum(40 // n, 1), of_none
    )
    np.testing.assert_array_equal(doubled, np.where(lengths > 0, 2 * lengths, -1))
    assert texts[:, 0].numpy().tolist() == [str(n).encode() if n else b"" for n in lengths]
    assert sum(map(len, work.pieces)) == (lengths > 0).sum()
    for piece in work.pieces:
        assert len(piece) <= max(40 // max(piece), 1)
        assert piece == sorted(piece, reverse=True)


def test_pieces_are_as_large_as_they_may_be():
    work = Doubled(np.full(10, 5, np.int32))
    in_pieces(
        work,
        tf.fill([10], 5),
        lambda n: tf.constant(4),
        (tf.zeros(10, tf.int32), tf.fill([10, 2], "")),
    )
    assert [len(piece) for piece in work.pieces] == [4, 4, 2]


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 31, 32])
@pytest.mark.parametrize("length", [1, 8, 9, 64, 200, LONGEST])
def test_what_fits_is_padded_to_a_compiled_shape_with_room_for_it(rows, length):
    rows = min(rows, int(most_compiled_rows(tf.constant(length), LONGEST)))
    source = np.random.default_rng(rows).integers(1, 99, (rows, length), np.int32)
    padded = padded_to_shape(tf.constant(source), LONGEST).numpy()
    shapes = compiled_shapes(LONGEST)
    room = [shape for shape in shapes if shape[0] >= rows and shape[1] >= length]
    assert padded.shape == min(room, key=lambda shape: (shape[1], shape[0]))
    np.testing.assert_array_equal(padded[:rows, :length], source)
    assert padded.sum() == source.sum()


def test_every_compiled_shape_is_its_own():
    for rows, length in compiled_shapes(LONGEST):
        assert padded_to_shape(tf.ones((rows, length), tf.int32), LONGEST).shape == (rows, length)
        assert rows <= most_compiled_rows(tf.constant(length), LONGEST)


@pytest.mark.parametrize("longest", [1, 8, 100, 1024, 10_000])
def test_compiled_shapes_are_few_and_small(longest):
    shapes = compiled_shapes(longest)
    assert len(shapes) <= 40
    assert max(length for _, length in shapes) == longest
    assert all(rows * length <= MOST_TOKENS or rows == 1 for rows, length in shapes)
