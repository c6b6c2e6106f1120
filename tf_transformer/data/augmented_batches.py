"""Batches of randomly changed examples. They are divided again by the new lengths."""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tf_transformer.data.prefetch import prefetch
from tf_transformer.data.shard_sampler import BatchIndices, ShardSampler
from tf_transformer.data.tokens import Batch, TokenExamples, chunks

Augment = Callable[[int, TokenExamples], TokenExamples]
"""augment(number, examples) -> changed examples of a window of the training.

The result depends on the number of the window and the examples only.
"""

WINDOW = 32  # number of batches that are divided again together
WINDOWS_AHEAD = 1


def augmented_batches(
    batches_from: Callable[[int], Iterable[BatchIndices]],
    start: int,
    augment: Augment,
    bucket_width: int,
    most_tokens: int | None = None,
) -> Iterator[Batch]:
    """Makes the batches from number `start` on, with changed examples.

    The examples of each window of `WINDOW` batches are changed, then divided into the same number
    of batches. The old batches would be too wide, because a few rows grow much: with BPE-dropout
    0.1, a third of the ids would be padding. `batches_from` takes a batch number, and makes the
    endless batches from there on. No batch has more ids of a name than `most_tokens`, with padding.
    """

    def window(numbered: tuple[int, list[BatchIndices]]) -> list[Batch]:
        number, batches = numbered
        rows = [batch.examples.taken(batch.rows) for batch in batches]
        changed = augment(number, TokenExamples.concatenated(rows))
        divided = evenly_divided(changed, len(batches), bucket_width, number, most_tokens)
        return [batch.padded() for batch in divided]

    first, skipped = divmod(start, WINDOW)
    windows = enumerate(chunks(batches_from(first * WINDOW), WINDOW), first)
    batches = itertools.chain.from_iterable(prefetch(window, windows, WINDOWS_AHEAD))
    return itertools.islice(batches, skipped, None)


def evenly_divided(
    examples: TokenExamples,
    count: int,
    bucket_width: int,
    seed: int,
    most_tokens: int | None = None,
) -> list[BatchIndices]:
    """Divides examples into exactly `count` batches with the smallest possible token budget.

    If the examples need more batches of `most_tokens`, random batches are left out. If there are
    fewer than `count` examples, some are repeated. The order of the batches depends on the seed.
    """

    def sampler(budget: int) -> ShardSampler:
        return ShardSampler(examples, budget, bucket_width)

    longest = max(int(rows.lengths.max()) for rows in examples.rows.values())
    budgets = range(1, len(examples) * (longest + bucket_width) + 1)
    fits = bisect.bisect_left(budgets, -count, key=lambda budget: -len(sampler(budget)))
    budget = min(budgets[fits], most_tokens or budgets[-1])
    batches = list(sampler(budget).epoch((seed, 4)))[:count]
    while len(batches) < count:
        batches.sort(key=lambda batch: len(batch.rows))
        rows = batches.pop().rows
        halves = np.array_split(rows, 2) if len(rows) > 1 else [rows, rows]
        batches += [BatchIndices(examples, half) for half in halves]
    return batches
