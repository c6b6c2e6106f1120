"""Micro-batches: parts of a batch that fit into memory or into a compiled shape.

A server receives batches of any shape: one sentence, or a thousand sentences with a very long one.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tf_transformer.machine.thresholds import BATCH_BUCKETS, COMPILED_BATCH_TOKENS, LENGTH_BUCKETS
from tf_transformer.text.special_ids import PAD_ID

Results = tuple[tf.Tensor, ...]


def run_in_micro_batches(
    function: Callable[[tf.Tensor], Results],
    lengths: tf.Tensor,
    max_rows: Callable[[tf.Tensor], tf.Tensor],
    results: Results,
) -> Results:
    """The results (B, ...) of a function on one micro-batch after another, longest rows first.

    Args:
        function: function from the indices of rows, int32 (R,), R ≥ 1, to their results (R, ...).
        lengths: int32 tensor (B,); rows of length 0 are left out.
        max_rows: function from the length of a micro-batch's longest row, int32, to the largest
            number of rows, at least 1.
        results: tensors (B, ...) with the results for rows of length 0.
    """
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    total = tf.math.count_nonzero(lengths, dtype=tf.int32)

    def run_one(start: tf.Tensor, results: Results) -> tuple[tf.Tensor, Results]:
        end = tf.minimum(start + max_rows(lengths[order[start]]), total)
        rows = order[start:end]
        pairs = zip(results, function(rows), strict=True)
        return end, tuple(
            tf.tensor_scatter_nd_update(all_, rows[:, None], new) for all_, new in pairs
        )

    start = tf.constant(0)
    loop = (lambda start, _: start < total), run_one
    return tf.while_loop(*loop, (start, results), parallel_iterations=1)[1]


def compiled_shapes(max_length: int) -> list[tuple[int, int]]:
    """All shapes (B, S) of the micro-batches of a compiled search, for the longest source."""
    return [
        (rows, length)
        for length in _length_buckets(max_length)
        for rows in BATCH_BUCKETS
        if rows <= _max_rows(length)
    ]


def max_compiled_rows(length: tf.Tensor, max_length: int) -> tf.Tensor:
    """The largest number of rows in a compiled shape for rows of `length` tokens, int32."""
    lengths = _length_buckets(max_length)
    return tf.gather([_max_rows(room) for room in lengths], _bucket(length, lengths))


def pad_to_shape(source: tf.Tensor, max_length: int) -> tf.Tensor:
    """Pads ids, int32 (B, S), to the next of `compiled_shapes`."""
    rows, columns = tf.unstack(tf.shape(source))
    lengths = _length_buckets(max_length)
    more_rows = tf.gather(BATCH_BUCKETS, _bucket(rows, BATCH_BUCKETS)) - rows
    more_columns = tf.gather(lengths, _bucket(columns, lengths)) - columns
    return tf.pad(source, [[0, more_rows], [0, more_columns]], constant_values=PAD_ID)


def _length_buckets(max_length: int) -> list[int]:
    return [*(length for length in LENGTH_BUCKETS if length < max_length), max_length]


def _max_rows(length: int) -> int:
    return max(
        rows for rows in BATCH_BUCKETS if rows * length <= COMPILED_BATCH_TOKENS or rows == 1
    )


def _bucket(size: tf.Tensor, sizes: Sequence[int]) -> tf.Tensor:
    """The index of the first of `sizes` (in rising order) that is at least `size`."""
    return tf.searchsorted(sizes, size[None])[0]
