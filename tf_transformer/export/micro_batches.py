"""A batch of any size, inside a graph, as pieces that fit into memory or a compiler's plan.

A server gives what it is given: one sentence, or a thousand of which one has a thousand tokens.
"""

from collections.abc import Callable

import tensorflow as tf

from tf_transformer.special_ids import PAD_ID

# A compiled search is compiled once a shape; rounded up to these, shapes stay few.
LENGTH_BUCKETS = (8, 16, 24, 32, 48, 64, 128, 256, 512)
BATCH_BUCKETS = (1, 4, 16, 32)
MOST_TOKENS = 4096  # of a compiled batch, because a compiled cache has its full size at once

Results = tuple[tf.Tensor, ...]


def in_pieces(
    work: Callable[[tf.Tensor], Results],
    lengths: tf.Tensor,
    most_rows: Callable[[tf.Tensor], tf.Tensor],
    results: Results,
) -> Results:
    """Works on a batch piece by piece, the longest rows first, and puts the results together.

    Args:
        work: work(rows) -> tensors (R, ...), for the rows of the batch that int32 `rows` (R,)
            names. Of no rows it is not called.
        lengths: int32 tensor (B,); rows of length 0 are left out.
        most_rows: from the length of a piece's longest row, int32, to the most rows it may have,
            at least 1.
        results: tensors (B, ...) that hold what rows of length 0 give.

    Returns:
        `results` with the rows of all pieces in their places.
    """
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    total = tf.math.count_nonzero(lengths, dtype=tf.int32)

    def one_piece(start: tf.Tensor, results: Results) -> tuple[tf.Tensor, Results]:
        end = tf.minimum(start + most_rows(lengths[order[start]]), total)
        rows = order[start:end]
        pairs = zip(results, work(rows), strict=True)
        return end, tuple(
            tf.tensor_scatter_nd_update(all_, rows[:, None], new) for all_, new in pairs
        )

    start = tf.constant(0)
    loop = (lambda start, _: start < total), one_piece
    return tf.while_loop(*loop, (start, results), parallel_iterations=1)[1]


def compiled_shapes(longest: int) -> list[tuple[int, int]]:
    """All shapes (B, S) that a compiled search pads pieces to.

    Args:
        longest: longest source in tokens with the end token.
    """
    return [
        (rows, length)
        for length in _length_buckets(longest)
        for rows in BATCH_BUCKETS
        if rows <= _most_rows(length)
    ]


def most_compiled_rows(length: tf.Tensor, longest: int) -> tf.Tensor:
    """The most rows of a compiled shape with room for `length` tokens."""
    lengths = _length_buckets(longest)
    return tf.gather([_most_rows(room) for room in lengths], _bucket(length, lengths))


def padded_to_shape(source: tf.Tensor, longest: int) -> tf.Tensor:
    """Ids (B, S), no more than fit, with padding up to one of `compiled_shapes`."""
    rows, columns = tf.unstack(tf.shape(source))
    lengths = _length_buckets(longest)
    more_rows = tf.gather(BATCH_BUCKETS, _bucket(rows, BATCH_BUCKETS)) - rows
    more_columns = tf.gather(lengths, _bucket(columns, lengths)) - columns
    return tf.pad(source, [[0, more_rows], [0, more_columns]], constant_values=PAD_ID)


def _length_buckets(longest: int) -> list[int]:
    return [*(length for length in LENGTH_BUCKETS if length < longest), longest]


def _most_rows(length: int) -> int:
    return max(rows for rows in BATCH_BUCKETS if rows * length <= MOST_TOKENS or rows == 1)


def _bucket(size: tf.Tensor, sizes: list[int] | tuple[int, ...]) -> tf.Tensor:
    """The place among rising `sizes` of the smallest with room for `size`."""
    return tf.searchsorted(sizes, size[None])[0]
