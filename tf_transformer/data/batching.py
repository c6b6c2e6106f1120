"""From token ids to batches: token budget, length buckets, reproducible order, made ahead."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import TokenPairs

IdBatch = tuple[np.ndarray, np.ndarray]  # source (B, S) and target (B, T), int32, 0 = padding
MIXED = 4  # shards whose batches are shuffled together
_WORKERS = 2  # threads that fill batches
_AHEAD = 16  # batches they may be ahead

T = TypeVar("T")
R = TypeVar("R")


class Members(NamedTuple):
    """Which pairs form a batch: those at `rows` of `pairs`."""

    pairs: TokenPairs
    rows: np.ndarray


class ShardPlan:
    """Which pairs of one shard form which batch.

    Pairs are ordered by their lengths rounded up to `bucket_width`, targets first; pairs with
    the same rounded lengths are shuffled among themselves. That order is cut where the next
    pair would overrun the token budget (paper section 5.1), and the batches are shuffled.
    Because the sequence of rounded lengths is the same in every epoch, so are the cuts.

    Args:
        pairs: the shard.
        batch_tokens: room for source tokens, and for target tokens, padding included.
        bucket_width: lengths are rounded up to multiples of this to be compared.
    """

    def __init__(self, pairs: TokenPairs, batch_tokens: int, bucket_width: int):
        self.pairs = pairs
        source, target = (-(-rows.lengths.astype(np.int64) // bucket_width) for rows in pairs)
        # Source lengths rise in one target bucket and fall in the next, so that a batch that
        # reaches into the next bucket still holds sources of one length.
        span = source.max() + 1
        key = 2 * span * target + span + np.where(target % 2 == 1, -source, source)
        _, first, place, counts = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        self._places = place.astype(np.min_scalar_type(len(first)))  # small: sorts much faster
        longest = np.maximum(source, target)[first] * bucket_width
        self._cuts = _cuts(longest.tolist(), counts.tolist(), batch_tokens)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._cuts) + 1

    def epoch(self, seed: tuple[int, ...]) -> Iterator[Members]:
        """The batches of one pass, in an order that is a function of the seed."""
        rng = np.random.default_rng(seed)
        order = self._order(rng)
        bounds = [0, *self._cuts, len(order)]
        for batch in rng.permutation(len(self)):
            yield Members(self.pairs, order[bounds[batch] : bounds[batch + 1]])

    def _order(self, rng: np.random.Generator) -> np.ndarray:
        """All pairs by length, and those of like length shuffled."""
        shuffled = rng.permutation(self.pairs.num_pairs)
        return shuffled[np.argsort(self._places[shuffled], kind="stable")]

    def room(self, seed: tuple[int, ...]) -> int:
        """Ids in the batches of the epoch of this seed, padding included."""
        order = self._order(np.random.default_rng(seed))
        starts = np.array([0, *self._cuts])
        sizes = np.diff([*starts, len(order)])
        return sum(
            int(np.dot(sizes, np.maximum.reduceat(rows.lengths[order], starts)))
            for rows in self.pairs
        )


def _cuts(longest: list[int], counts: list[int], batch_tokens: int) -> list[int]:
    """Where batches end, for groups of so many pairs, of such longest sides, in this order."""
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


class BatchPlan:
    """Which pairs form which batch, in which order: a function of (seed, epoch).

    A batch holds pairs of one shard. An epoch goes through the shards in an order of its own,
    `MIXED` at a time, whose batches are shuffled together; only those are open. The first epoch
    takes the shards in the order in which they are made, so that it can begin before all are.
    Every epoch has the same number of batches, and any position can be sought.

    Args:
        store: the tokenised corpus.
        batch_tokens: room for source tokens, and for target tokens, padding included.
        bucket_width: lengths are rounded up to multiples of this to be compared.
        seed: of all orders.
    """

    def __init__(self, store: TokenStore, batch_tokens: int, bucket_width: int, seed: int):
        self.store = store
        self.seed = seed
        self._options = (batch_tokens, bucket_width)
        self._sizes: dict[int, int] = {}  # batches of shards

    def __len__(self) -> int:
        """Batches in an epoch; waits until all shards are made."""
        return sum(map(self._size, range(self.store.num_shards())))

    def _size(self, shard: int) -> int:
        if shard not in self._sizes:
            self._plan(shard)
        return self._sizes[shard]

    def _plan(self, shard: int) -> ShardPlan:
        plan = ShardPlan(self.store.shard(shard), *self._options)
        self._sizes[shard] = len(plan)
        return plan

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Members]:
        """The batches of one pass over the corpus, from batch number `start` on."""
        for group in self._groups(epoch):
            if start and start >= (size := sum(map(self._size, group))):
                start -= size
            else:
                yield from itertools.islice(self._mixed(group, epoch), start, None)
                start = 0

    def _groups(self, epoch: int) -> Iterator[list[int]]:
        if epoch == 0:
            shards = itertools.takewhile(self.store.has, itertools.count())
        else:
            rng = np.random.default_rng((self.seed, epoch, 0, 1))
            shards = iter(rng.permutation(self.store.num_shards()).tolist())
        while group := list(itertools.islice(shards, MIXED)):
            yield group

    def _mixed(self, group: list[int], epoch: int) -> Iterator[Members]:
        """The batches of these shards, shuffled together."""
        plans = [self._plan(shard) for shard in group]
        turns = np.repeat(np.arange(len(plans)), [len(plan) for plan in plans])
        np.random.default_rng((self.seed, epoch, group[0], 2)).shuffle(turns)
        of_shard = [
            plan.epoch((self.seed, epoch, shard)) for plan, shard in zip(plans, group, strict=True)
        ]
        return (next(of_shard[turn]) for turn in turns)

    def batches(self, start: int = 0) -> Iterator[IdBatch]:
        """Endless batches from batch number `start` of the whole training on.

        Args:
            start: batches to pass over, counted from the first of epoch 0.
        """
        epoch, first = divmod(start, len(self)) if start else (0, 0)
        members = itertools.chain(
            self.epoch(epoch, first),
            itertools.chain.from_iterable(map(self.epoch, itertools.count(epoch + 1))),
        )
        return made_ahead(_filled, members)

    def one_pass(self) -> Iterator[IdBatch]:
        """Every pair once."""
        return made_ahead(_filled, self.epoch(0))

    def padding_share(self) -> float:
        """The share of padding among all ids of the first epoch's batches, 0 to 1."""
        real = room = 0
        for number in range(self.store.num_shards()):
            plan = self._plan(number)
            real += sum(int(rows.lengths.sum()) for rows in plan.pairs)
            room += plan.room((self.seed, 0, number))
        return 1.0 - real / room

    def summary(self) -> str:
        """Batches and padding in words; nothing that would have to wait for a shard."""
        if not self.store.is_whole:
            return "counted when all pairs are tokenised"
        return f"{len(self):,} a pass, {self.padding_share():.1%} padding"


def _filled(members: Members) -> IdBatch:
    source, target = (rows.padded(members.rows) for rows in members.pairs)
    return source, target


def made_ahead(make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`map`, with what comes next made by threads meanwhile; in the order of the items."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
