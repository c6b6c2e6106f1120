"""Parts of a batch: micro-batches, which fit into memory or a compiled shape; parallel searches.

A server receives batches of any shape: one sentence, or a thousand sentences with a very long one.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.machine.thresholds import BATCH_BUCKETS, COMPILED_BATCH_TOKENS, LENGTH_BUCKETS
from tf_transformer.text.special_ids import PAD_ID

SMALLEST_PART = 8  # sentences; smaller parts do not pay for their own search

SearchIds = Callable[[tf.Tensor], Hypotheses]
"""A function from source ids (B, S) to hypotheses."""

Results = tuple[tf.Tensor, ...]


def run_in_micro_batches(
    function: Callable[[tf.Tensor], Results],
    lengths: tf.Tensor,
    max_rows: Callable[[tf.Tensor], tf.Tensor],
    results: Results,
    is_second: tf.Tensor | None = None,
) -> Results:
    """The results (B, ...) of a function on one micro-batch after another, longest rows first.

    The function takes the indices of rows, int32 (R,), R ≥ 1. Rows whose `lengths`, int32 (B,), are
    0 are left out; `results` (B, ...) has their results. `max_rows` is a function from the length
    of a micro-batch's longest row, int32, to the largest number of rows, at least 1. Rows that bool
    (B,) `is_second` marks share no micro-batch with other rows, and come after them.
    """
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    total = first = tf.math.count_nonzero(lengths, dtype=tf.int32)
    if is_second is not None:
        runs_first = tf.gather(~is_second, order[:total])
        order = tf.concat([tf.boolean_mask(order[:total], x) for x in (runs_first, ~runs_first)], 0)
        first = tf.math.count_nonzero(runs_first, dtype=tf.int32)

    def run_one(start: tf.Tensor, results: Results) -> tuple[tf.Tensor, Results]:
        last = tf.where(start < first, first, total)
        end = tf.minimum(start + max_rows(lengths[order[start]]), last)
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


class ParallelSearch:
    """Searches the parts of a batch, int32 (B, S), padded at the end, in parallel.

    Many operations of a step are too small to divide between threads. Two halves in parallel are
    therefore faster than the whole batch. Batches are sorted by length, so each part takes every
    n-th row. The graph has a copy of the search for each part, because TensorFlow runs the
    iterations of a loop that reads variables one after another. A small batch has fewer parts, with
    at least `SMALLEST_PART` rows each.
    """

    def __init__(self, search: SearchIds, parts: int):
        ids = tf.TensorSpec((None, None), tf.int32)
        self._search = tf.function(search, [ids], autograph=False)
        self._parts = parts

    def __call__(self, source: tf.Tensor) -> Hypotheses:
        total = tf.shape(source)[0]
        count = tf.clip_by_value(total // SMALLEST_PART, 1, self._parts)
        rows = [
            tf.range(tf.where(part < count, part, total), total, count)
            for part in range(self._parts)
        ]
        fields = self._search.get_concrete_function().structured_outputs
        none = [([size or 0 for size in [0, *x.shape[1:]]], x.dtype) for x in fields]
        parts = [self._search(tf.gather(source, rows[0]))]
        for part in rows[1:]:
            some = tf.cond(
                tf.size(part) > 0,
                lambda part=part: self._search(tf.gather(source, part)),
                lambda: Hypotheses(*(tf.zeros(shape, dtype) for shape, dtype in none)),
            )
            parts.append(some)
        return _joined(parts, tf.argsort(tf.concat(rows, axis=0)))


def _joined(parts: Sequence[Hypotheses], order: tf.Tensor) -> Hypotheses:
    """The hypotheses of all parts; row n is row `order[n]` of the concatenated parts."""
    longest = tf.reduce_max([tf.shape(part.ids)[2] for part in parts])
    padded = []
    for part in parts:
        more = longest - tf.shape(part.ids)[2]
        padded.append(part._replace(ids=tf.pad(part.ids, [[0, 0], [0, 0], [0, more]])))
    fields = zip(*padded, strict=True)
    return Hypotheses(*(tf.gather(tf.concat(field, axis=0), order) for field in fields))
