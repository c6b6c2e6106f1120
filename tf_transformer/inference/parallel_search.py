"""A search that divides its batch into parts that run in parallel."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tf_transformer.decoding import Hypotheses

SMALLEST_PART = 8  # sentences; smaller parts do not pay for their own search

SearchIds = Callable[[tf.Tensor], Hypotheses]
"""A function from source ids (B, S) to hypotheses."""


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
        traced = self._search.get_concrete_function()
        parts = [self._search(tf.gather(source, rows[0]))]
        for part in rows[1:]:
            some = tf.cond(
                tf.size(part) > 0,
                lambda part=part: self._search(tf.gather(source, part)),
                lambda: _nothing(traced.structured_outputs),
            )
            parts.append(some)
        return _joined(parts, tf.argsort(tf.concat(rows, axis=0)))


def _nothing(like: Hypotheses) -> Hypotheses:
    """Hypotheses for zero sentences, (0, N, ...)."""
    return Hypotheses(
        *(tf.zeros([size or 0 for size in [0, *field.shape[1:]]], field.dtype) for field in like)
    )


def _joined(parts: Sequence[Hypotheses], order: tf.Tensor) -> Hypotheses:
    """The hypotheses of all parts; row n is row `order[n]` of the concatenated parts."""
    longest = tf.reduce_max([tf.shape(part.ids)[2] for part in parts])
    padded = []
    for part in parts:
        more = longest - tf.shape(part.ids)[2]
        padded.append(part._replace(ids=tf.pad(part.ids, [[0, 0], [0, 0], [0, more]])))
    fields = zip(*padded, strict=True)
    return Hypotheses(*(tf.gather(tf.concat(field, axis=0), order) for field in fields))
