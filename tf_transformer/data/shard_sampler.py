"""The batches of one shard: token budget, length buckets, and a reproducible order."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tf_transformer.data.tokens import Batch, TokenExamples


class BatchIndices(NamedTuple):
    """A batch before padding: the rows of `examples` at the indices `rows`."""

    examples: TokenExamples
    rows: np.ndarray

    def padded(self) -> Batch:
        """Pads the batch: by name, ids as int32 arrays (B, L), 0 = padding."""
        return self.examples.batch(self.rows)


class ShardSampler:
    """Divides the examples of one shard into batches.

    Lengths are rounded up to multiples of `bucket_width`. Examples are sorted by the rounded length
    of the last name, then of the other names. Examples with equal rounded lengths are shuffled. A
    batch ends where the next example would exceed the token budget (paper section 5.1). The batches
    are shuffled, too. The rounded lengths are the same in every epoch, so the ends of batches are
    also the same. `BatchSampler` describes the arguments.

    Args:
        draws: integer array (N,), how often an epoch has each example; None: once.
    """

    def __init__(
        self,
        examples: TokenExamples,
        batch_tokens: int,
        bucket_width: int,
        draws: np.ndarray | None = None,
    ):
        self.examples = examples
        self._drawn = np.arange(len(examples))
        if draws is not None:
            self._drawn = np.repeat(self._drawn, draws)
        buckets = [
            -(-rows.lengths.astype(np.int64) // bucket_width) for rows in examples.counted.values()
        ]
        _, first, order, counts = np.unique(
            _sort_keys(buckets), return_index=True, return_inverse=True, return_counts=True
        )
        self._order = order.astype(np.min_scalar_type(len(first)))  # small types sort faster
        if draws is not None:
            counts = np.bincount(order, draws, len(first)).astype(int)
        longest = np.max(buckets, axis=0)[first] * bucket_width
        self._cuts = _cuts(longest.tolist(), counts.tolist(), batch_tokens)

    def __len__(self) -> int:
        return len(self._cuts) + bool(len(self._drawn))

    def epoch(self, seed: tuple[int, ...]) -> Iterator[BatchIndices]:
        """Makes the batches of one epoch, in an order that depends on the seed."""
        rng = np.random.default_rng(seed)
        rows = self._shuffled(rng)
        bounds = [0, *self._cuts, len(rows)]
        for batch in rng.permutation(len(self)):
            yield BatchIndices(self.examples, rows[bounds[batch] : bounds[batch + 1]])

    def _shuffled(self, rng: np.random.Generator) -> np.ndarray:
        """Sorts the rows by rounded lengths. Rows with equal lengths are shuffled."""
        rows = rng.permutation(self._drawn)
        return rows[np.argsort(self._order[rows], kind="stable")]

    def sizes(self, seed: tuple[int, ...]) -> tuple[int, int]:
        """Counts the ids in the batches of the epoch with this seed: without and with padding."""
        order = self._shuffled(np.random.default_rng(seed))
        names = self.examples.counted.values()
        real = sum(int(rows.lengths[self._drawn].sum()) for rows in names)
        starts = np.array([0, *self._cuts])
        sizes = np.diff([*starts, len(order)])
        longest = (np.maximum.reduceat(rows.lengths[order], starts) for rows in names)
        return real, sum(int(np.dot(sizes, each)) for each in longest)


def _sort_keys(buckets: Iterable[np.ndarray]) -> np.ndarray:
    """Makes an integer for each example, to sort examples by rounded lengths, last name first.

    The lengths of other names rise in one bucket of the last name and fall in the next one. So a
    batch with rows of both buckets still has similar lengths.
    """
    keys, *others = buckets
    for bucket in others:
        span = keys.max() + 1
        keys = 2 * span * bucket + span + np.where(bucket % 2 == 1, -keys, keys)
    return keys


def _cuts(longest: list[int], counts: list[int], batch_tokens: int) -> list[int]:
    """Finds the ends of batches, for groups of `counts` examples with rows up to `longest`."""
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
