"""The batches of a training run, in an order that can be computed from any position."""

import bisect
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from tf_transformer.data.mixture import Exposure, Mixture
from tf_transformer.data.own_shards import OwnShards
from tf_transformer.data.shard_sampler import BatchIndices, ShardSampler
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import Batch, TokenExamples, chunks

OPEN_SHARDS = 4  # shards whose batches are shuffled together
THREADS, AHEAD = 2, 16  # of `prefetch`: threads, and results ahead of their use
T = TypeVar("T")
R = TypeVar("R")

Augment = Callable[[int, TokenExamples], TokenExamples]
"""augment(number, examples) -> changed examples of a window of the training.

The result depends on the number of the window and the examples only.
"""

WINDOW = 32  # number of batches that are divided again together
WINDOWS_AHEAD = 1


@dataclass(eq=False)
class BatchSampler:
    """Makes all batches of a training run. Their order depends on seed and epoch only.

    A batch holds examples of one shard. An epoch visits the shards in a random order. It opens
    `OPEN_SHARDS` shards at a time and shuffles their batches together. The first epoch takes the
    shards in the order in which they are made, so it can start before all shards exist. All epochs
    have the same number of batches, or nearly so with a `Mixture`. Training can start at any batch.

    Args:
        store: the tokenised examples, of one corpus or as a `Mixture` of several.
        batch_tokens: largest number of ids of each name in a batch, with padding (paper section
            5.1).
        bucket_width: lengths are rounded up to multiples of this width and then compared.
        seed: seed of all orders.
        augment: changes the examples of `batches`; None: they stay as they are.
        epoch_size: number of batches of an epoch, which leaves out the others; 0: all. Workers with
            `OwnShards` have the same number.
        keeps_budget: whether batches of changed examples hold at most `batch_tokens`, too. If the
            examples have grown, random batches are left out. False: the batches grow.

    Example:
        >>> from tf_transformer.data.tokens import IdRows, TokenExamples
        >>> examples = TokenExamples({"source": IdRows.from_lists([[5, 2], [6, 7, 2]])})
        >>> store = TokenStore.of(examples)
        >>> sampler = BatchSampler(store, batch_tokens=8, bucket_width=1, seed=1)
        >>> [batch["source"].shape for batch in sampler.one_epoch()]
        [(2, 3)]
    """

    store: TokenStore | Mixture | OwnShards
    batch_tokens: int
    bucket_width: int
    seed: int
    augment: Augment | None = None
    keeps_budget: bool = False
    epoch_size: int = 0
    # Batches by shard and epoch.
    _sizes: dict[tuple[int, int], int] = field(default_factory=dict, init=False)
    # Shares of the examples of windows that `keeps_budget` leaves out, by number of the window.
    _left_out: dict[int, float] = field(default_factory=dict, init=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ids in a batch."""
        return self.store.names

    def __len__(self) -> int:
        """Number of batches in the first epoch. Waits until all shards are made."""
        return self._epoch_size(0)

    def _epoch_size(self, epoch: int) -> int:
        if self.epoch_size:
            return self.epoch_size
        return sum(self._size(shard, epoch) for shard in range(self.store.num_shards()))

    def updates(self, accumulate: int, epochs: int = 1) -> int:
        """Number of updates in epochs like the first, each with so many batches. Waits as `len`."""
        return max(1, len(self) // accumulate) * epochs

    def _size(self, shard: int, epoch: int) -> int:
        epoch = epoch if self.store.epochs_differ else 0
        if (shard, epoch) not in self._sizes:
            self._sampler(shard, epoch)
        return self._sizes[shard, epoch]

    def _sampler(self, shard: int, epoch: int) -> ShardSampler:
        examples, draws = self.store.shard(shard), self.store.draws(shard, epoch)
        sampler = ShardSampler(examples, self.batch_tokens, self.bucket_width, draws)
        self._sizes[shard, epoch if self.store.epochs_differ else 0] = len(sampler)
        return sampler

    def epoch(self, epoch: int, start: int = 0) -> Iterator[BatchIndices]:
        """Makes the batches of one epoch, from batch number `start` on."""
        most = self.epoch_size - start if self.epoch_size else None
        return itertools.islice(self._all_of_epoch(epoch, start), most)

    def _all_of_epoch(self, epoch: int, start: int) -> Iterator[BatchIndices]:
        for group in self._groups(epoch):
            if start and start >= (size := sum(self._size(shard, epoch) for shard in group)):
                start -= size
            else:
                yield from itertools.islice(self._shuffled(group, epoch), start, None)
                start = 0

    def _groups(self, epoch: int) -> Iterator[list[int]]:
        if epoch == 0:
            shards = itertools.takewhile(self.store.has_shard, itertools.count())
        else:
            rng = np.random.default_rng((self.seed, epoch, 0, 1))
            shards = iter(rng.permutation(self.store.num_shards()).tolist())
        while group := list(itertools.islice(shards, OPEN_SHARDS)):
            yield group

    def _shuffled(self, group: list[int], epoch: int) -> Iterator[BatchIndices]:
        """Shuffles the batches of some shards together."""
        samplers = [self._sampler(shard, epoch) for shard in group]
        order = np.repeat(np.arange(len(samplers)), [len(sampler) for sampler in samplers])
        np.random.default_rng((self.seed, epoch, group[0], 2)).shuffle(order)
        batches = [
            sampler.epoch((self.seed, epoch, shard))
            for sampler, shard in zip(samplers, group, strict=True)
        ]
        return (next(batches[i]) for i in order)

    def of_worker(
        self, worker: int, workers: int, smallest: Callable[[int], int]
    ) -> "BatchSampler":
        """The sampler of one of several workers, which reads its own shards.

        Its batches hold its part of `batch_tokens`. `smallest` gives the smallest number of all
        workers, so that all have epochs of the same size.
        """
        own = OwnShards(self.store, worker, workers)  # type: ignore[arg-type]
        sampler = replace(self, store=own, batch_tokens=self.batch_tokens // workers)
        return replace(sampler, epoch_size=smallest(len(sampler)))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Makes endless batches, from batch number `start` of the training on."""
        if self.augment:
            most_tokens = self.batch_tokens if self.keeps_budget else None
            return augmented_batches(
                *(self._indices, start, self.augment, self.bucket_width, most_tokens),
                left_out=self._left_out,
            )
        return prefetch(BatchIndices.padded, self._indices(start))

    def _indices(self, start: int) -> Iterator[BatchIndices]:
        epoch, first = self._place(start)
        later = map(self.epoch, itertools.count(epoch + 1))
        return itertools.chain(self.epoch(epoch, first), itertools.chain.from_iterable(later))

    def _place(self, batch: int) -> tuple[int, int]:
        """The epoch of a batch of the training, and the number of the batch in the epoch."""
        if batch and not self.store.epochs_differ:
            return divmod(batch, len(self))
        epoch = 0
        while batch and batch >= (size := self._epoch_size(epoch)):
            batch, epoch = batch - size, epoch + 1
        return epoch, batch

    def epochs(self, batches: int) -> float:
        """The number of epochs, with a fraction, that so many batches of the training are.

        An epoch that the training has not reached counts as the first one, which costs less time
        than to draw its examples.
        """
        shards, epoch = range(self.store.num_shards()), 0
        while True:
            is_made = all((shard, epoch) in self._sizes for shard in shards)
            size = self._epoch_size(epoch if is_made else 0)
            if batches < size:
                return epoch + batches / size
            batches, epoch = batches - size, epoch + 1

    def exposure(self, batches: int, left_out: float = 0.0) -> list[Exposure]:
        """How often so many batches of the training see each corpus; [] without a `Mixture`.

        A part of an epoch counts as this share of its examples. Of the batches, `left_out` were
        left out; see the method.
        """
        if isinstance(self.store, Mixture):
            return self.store.exposure(self.epochs(batches) * (1 - left_out / max(1, batches)))
        return []

    def left_out(self, start: int, stop: int) -> float:
        """How many of the batches from `start` to `stop` were left out; see `keeps_budget`.

        It knows the batches that this process has made.
        """
        return sum(
            share * max(0, min(stop, WINDOW * (number + 1)) - max(start, WINDOW * number))
            for number, share in list(self._left_out.items())
        )

    def one_epoch(self) -> Iterator[Batch]:
        """Makes the batches of the first epoch, which has every example once."""
        return prefetch(BatchIndices.padded, self.epoch(0))

    def padding_fraction(self) -> float:
        """The share of padding in the batches of the first epoch, from 0 to 1."""
        real = size = 0
        for number in range(self.store.num_shards()):
            shard = self._sampler(number, 0).sizes((self.seed, 0, number))
            real, size = real + shard[0], size + shard[1]
        return 1.0 - real / size

    def summary(self) -> str:
        """Describes batches and padding in a line. It does not wait for unfinished shards."""
        if not self.store.is_complete:
            return "counted when all examples are tokenised"
        return f"{len(self):,} per epoch, {self.padding_fraction():.1%} padding"


def augmented_batches(
    batches_from: Callable[[int], Iterable[BatchIndices]],
    start: int,
    augment: Augment,
    bucket_width: int,
    most_tokens: int | None = None,
    left_out: dict[int, float] | None = None,
) -> Iterator[Batch]:
    """Makes the batches from number `start` on, with changed examples.

    The examples of each window of `WINDOW` batches are changed, then divided into the same number
    of batches. The old batches would be too wide, because a few rows grow much: with BPE-dropout
    0.1, a third of the ids would be padding. `batches_from` takes a batch number, and makes the
    endless batches from there on. No batch has more ids of a name than `most_tokens`, with padding.
    `left_out` gets the share of each window's examples that this leaves out.
    """

    def window(numbered: tuple[int, list[BatchIndices]]) -> list[Batch]:
        number, batches = numbered
        rows = [batch.examples.taken(batch.rows) for batch in batches]
        changed = augment(number, TokenExamples.concatenated(rows))
        divided = evenly_divided(changed, len(batches), bucket_width, number, most_tokens)
        if left_out is not None:
            left_out[number] = max(0.0, 1 - sum(len(x.rows) for x in divided) / len(changed))
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

    longest = max(int(rows.lengths.max()) for rows in examples.counted.values())
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


def prefetch(function: Callable[[T], R], items: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
    """Like `map(function, items)`, but threads compute the next `ahead` results."""
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
