"""The batches of one shard: token budget, length buckets, reproducible order."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tf_transformer.data.tokens import Batch, TokenExamples


class BatchIndices(NamedTuple):
    """A batch that is not padded yet: the rows at `rows` of `examples`."""

    examples: TokenExamples
    rows: np.ndarray

    def padded(self) -> Batch:
        """By name, the ids (B, L) of the batch; int32, 0 = padding."""
        return self.examples.batch(self.rows)

    def taken(self) -> TokenExamples:
        """The examples of the batch alone."""
        return self.examples.taken(self.rows)


class ShardSampler:
    """Divides the examples of one shard into batches.

    Examples are ordered by their lengths rounded up to `bucket_width`, the last name first;
    examples with the same rounded lengths are shuffled among themselves. That order is cut where
    the next example would overrun the token budget (paper section 5.1), and the batches are
    shuffled. The sequence of rounded lengths is the same in every epoch, and so are the cuts.

    Args:
        examples: the shard.
        batch_tokens: most ids of one name in a batch, padding included.
        bucket_width: lengths are rounded up to multiples of this to be compared.
    """

    def __init__(self, examples: TokenExamples, batch_tokens: int, bucket_width: int):
        self.examples = examples
        buckets = [
            -(-rows.lengths.astype(np.int64) // bucket_width) for rows in examples.rows.values()
        ]
        _, first, order, counts = np.unique(
            _sort_keys(buckets), return_index=True, return_inverse=True, return_counts=True
        )
        self._order = order.astype(np.min_scalar_type(len(first)))  # small: sorts much faster
        longest = np.max(buckets, axis=0)[first] * bucket_width
        self._cuts = _cuts(longest.tolist(), counts.tolist(), batch_tokens)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._cuts) + 1

    def epoch(self, seed: tuple[int, ...]) -> Iterator[BatchIndices]:
        """The batches of one epoch, in an order that is a function of the seed."""
        rng = np.random.default_rng(seed)
        rows = self._shuffled(rng)
        bounds = [0, *self._cuts, len(rows)]
        for batch in rng.permutation(len(self)):
            yield BatchIndices(self.examples, rows[bounds[batch] : bounds[batch + 1]])

    def _shuffled(self, rng: np.random.Generator) -> np.ndarray:
        """All rows by length, rows of equal rounded lengths in random order."""
        rows = rng.permutation(len(self.examples))
        return rows[np.argsort(self._order[rows], kind="stable")]

    def padded_size(self, seed: tuple[int, ...]) -> int:
        """Ids in the batches of the epoch of this seed, padding included."""
        order = self._shuffled(np.random.default_rng(seed))
        starts = np.array([0, *self._cuts])
        sizes = np.diff([*starts, len(order)])
        return sum(
            int(np.dot(sizes, np.maximum.reduceat(rows.lengths[order], starts)))
            for rows in self.examples.rows.values()
        )


def _sort_keys(buckets: Iterable[np.ndarray]) -> np.ndarray:
    """One integer per example, which sorts examples by the rounded lengths of the last name first.

    The lengths of the other names rise in one bucket of the last name and fall in the next, so
    that a batch which reaches into the next bucket still holds similar lengths.
    """
    keys, *others = buckets
    for bucket in others:
        span = keys.max() + 1
        keys = 2 * span * bucket + span + np.where(bucket % 2 == 1, -keys, keys)
    return keys


def _cuts(longest: list[int], counts: list[int], batch_tokens: int) -> list[int]:
    """Ends of batches, for groups of `counts` examples whose longest rows are `longest`."""
    cuts: list[int] = []
    position = rows = widest = 0
    for length, count in zip(longest, counts, strict=True):
        while count:
            widest = max(widest, length)
            free = max(batch_tokens // widest, 0 if rows else 1) - rows
            if free <= 0:
                cuts.append(position)
                rows = widest = 0
                continue
            taken = min(free, count)
            rows, position, count = rows + taken, position + taken, count - taken
    return cuts
