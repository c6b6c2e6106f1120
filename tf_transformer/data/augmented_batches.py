"""Batches of examples that change at random: formed again by the lengths after the change."""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tf_transformer.data.prefetch import prefetch
from tf_transformer.data.shard_sampler import BatchIndices, ShardSampler
from tf_transformer.data.tokens import Batch, TokenExamples, chunks

Augment = Callable[[int, TokenExamples], TokenExamples]
"""Changes the examples of window number N of a training; a function of N and the examples."""

WINDOW = 32  # batches whose examples are divided into batches again, together
WINDOWS_AHEAD = 1


def augmented_batches(
    batches_from: Callable[[int], Iterable[BatchIndices]],
    start: int,
    augment: Augment,
    bucket_width: int,
) -> Iterator[Batch]:
    """The batches from number `start` on, with changed examples.

    Each window of `WINDOW` batches is divided into as many batches again. In the batches as they
    were, the few rows that grow most would set the width: with BPE-dropout at 0.1, a third of the
    ids would be padding.

    Args:
        batches_from: makes the endless batches from a number on.
        start: number of the first batch of the result.
        augment: changes the examples of a window.
        bucket_width: lengths are rounded up to multiples of this to be compared.
    """

    def window(numbered: tuple[int, list[BatchIndices]]) -> list[Batch]:
        number, batches = numbered
        rows = TokenExamples.concatenated([batch.taken() for batch in batches])
        divided = evenly_divided(augment(number, rows), len(batches), bucket_width, number)
        return [batch.padded() for batch in divided]

    first, skipped = divmod(start, WINDOW)
    windows = enumerate(chunks(batches_from(first * WINDOW), WINDOW), first)
    batches = itertools.chain.from_iterable(prefetch(window, windows, WINDOWS_AHEAD))
    return itertools.islice(batches, skipped, None)


def evenly_divided(
    examples: TokenExamples, count: int, bucket_width: int, seed: int
) -> list[BatchIndices]:
    """The examples in exactly `count` batches, by the smallest token budget that suffices.

    Args:
        examples: at least `count`.
        count: of batches.
        bucket_width: lengths are rounded up to multiples of this to be compared.
        seed: of the order of the batches.
    """

    def sampler(budget: int) -> ShardSampler:
        return ShardSampler(examples, budget, bucket_width)

    longest = max(int(rows.lengths.max()) for rows in examples.rows.values())
    budgets = range(1, len(examples) * (longest + bucket_width) + 1)
    fits = bisect.bisect_left(budgets, -count, key=lambda budget: -len(sampler(budget)))
    batches = list(sampler(budgets[fits]).epoch((seed, 4)))
    while len(batches) < count:
        batches.sort(key=lambda batch: len(batch.rows))
        rows = batches.pop().rows
        batches += [BatchIndices(examples, half) for half in np.array_split(rows, 2)]
    return batches
