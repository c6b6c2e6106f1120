"""Batches of ids: nothing lost, nothing over budget, and an order that can be recomputed."""

import bisect
import itertools
import time
import weakref
from collections import Counter

import numpy as np
import pytest
from tf_transformer.data.batching import BatchPlan, made_ahead

from tf_transformer.data import batching
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import IdRows, TokenPairs

BUDGET = 100


def pairs_of_lengths(source_lengths, target_lengths, first=1) -> TokenPairs:
    """Pair number n holds the id first + n only, so that batches can be traced back to pairs."""
    sides = (
        IdRows.from_lists([[n] * length for n, length in enumerate(lengths, start=first)])
        for lengths in (source_lengths, target_lengths)
    )
    return TokenPairs(*sides)


def plan_of(*shards, batch_tokens=BUDGET, bucket_width=2, seed=1) -> BatchPlan:
    return BatchPlan(TokenStore.of(*shards), batch_tokens, bucket_width, seed)


def random_pairs(count, first=1):
    rng = np.random.default_rng(first)
    sources = rng.integers(1, 40, count)
    return pairs_of_lengths(sources, np.maximum(1, sources + rng.integers(-5, 6, count)), first)


@pytest.fixture(scope="module")
def pairs():
    return random_pairs(500)


@pytest.fixture(scope="module")
def shards():
    """10 shards of 60 to 69 pairs."""
    firsts = np.cumsum([1, *range(60, 69)])
    return [random_pairs(60 + n, first) for n, first in enumerate(firsts.tolist())]


@pytest.fixture(scope="module", params=["one shard", "ten shards"])
def plan(request, pairs, shards):
    store = [pairs] if request.param == "one shard" else shards
    return plan_of(*store, bucket_width=4, seed=3)


def numbers(plan, epoch) -> list[list[int]]:
    """The ids of the pairs of each batch."""
    return [pairs.sources.padded(rows)[:, 0].tolist() for pairs, rows in plan.epoch(epoch)]


def first_batches(plan, count, start=0):
    batches = plan.batches(start)
    return [next(batches) for _ in range(count)]


def assert_same_batches(some, others):
    for one, other in zip(some, others, strict=True):
        for side, other_side in zip(one, other, strict=True):
            np.testing.assert_array_equal(side, other_side)


# --- one epoch -------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_every_pair_is_in_an_epoch_once(plan, epoch):
    seen = sorted(itertools.chain(*numbers(plan, epoch)))
    assert seen == list(range(1, plan.store.num_pairs + 1))


def test_sides_of_a_batch_hold_the_same_pairs_in_full(pairs):
    seen = []
    for source, target in plan_of(pairs).one_pass():
        np.testing.assert_array_equal(source[:, 0], target[:, 0])
        rows = source[:, 0] - 1
        seen.extend(rows)
        for side, all_rows in zip((source, target), pairs, strict=True):
            np.testing.assert_array_equal((side != 0).sum(axis=1), all_rows.lengths[rows])
            expected = np.where(side != 0, side[:, :1], 0)  # the id, then padding
            np.testing.assert_array_equal(side, expected)
    assert sorted(seen) == list(range(pairs.num_pairs))


@pytest.mark.parametrize("bucket_width", [1, 2, 8])
def test_budget_is_never_exceeded(pairs, bucket_width):
    plan = plan_of(pairs, bucket_width=bucket_width)
    sizes = [(source.size, target.size) for source, target in first_batches(plan, 2 * len(plan))]
    assert np.max(sizes) <= BUDGET
    assert np.mean(sizes) > BUDGET / 2  # and most of it is used


@pytest.mark.parametrize("budget", [1, 13, 40, 100, 1000])
def test_batches_end_where_the_next_pair_would_overrun_the_budget(budget):
    """Oracle: the rule applied pair by pair."""
    rng = np.random.default_rng(budget)
    longest, counts = rng.integers(1, 50, 60).tolist(), rng.integers(1, 9, 60).tolist()
    cuts, start, widest = [], 0, 0
    for end, length in enumerate(np.repeat(longest, counts).tolist()):
        widest = max(widest, length)
        if end > start and widest * (end - start + 1) > budget:
            cuts.append(end)
            start, widest = end, length
    assert batching._cuts(longest, counts, budget) == cuts


def test_pair_longer_than_the_budget_is_a_batch_of_one():
    plan = plan_of(pairs_of_lengths([3, 200, 3], [3, 2, 3]))
    shapes = sorted(source.shape for source, _ in plan.one_pass())
    assert shapes == [(1, 200), (2, 3)]


def test_corpus_of_one_pair():
    plan = plan_of(pairs_of_lengths([2], [3]))
    assert len(plan) == 1
    for source, target in first_batches(plan, 3):
        np.testing.assert_array_equal(source, [[1, 1]])
        np.testing.assert_array_equal(target, [[1, 1, 1]])
    assert plan.padding_share() == 0.0


def test_batch_holds_pairs_of_like_lengths(pairs):
    """Random batches of this corpus would be almost half padding."""
    assert plan_of(pairs, bucket_width=4).padding_share() < 0.15


def test_padding_share_by_hand():
    """Budget 6: the pairs (1, 1) and (2, 3) share a batch, (6, 5) has its own.

    Ids: 3 + 4 and 6 + 5 = 18. Room: 2 · 2 + 2 · 3 and 6 + 5 = 21. Padding: 3 / 21.
    """
    plan = plan_of(pairs_of_lengths([1, 2, 6], [1, 3, 5]), batch_tokens=6, bucket_width=1)
    assert sorted(source.shape for source, _ in plan.one_pass()) == [(1, 6), (2, 2)]
    np.testing.assert_allclose(plan.padding_share(), 3 / 21)


def test_padding_share_is_that_of_the_batches(plan):
    sides = [side for batch in plan.one_pass() for side in batch]
    padding = sum(int((side == 0).sum()) for side in sides)
    np.testing.assert_allclose(plan.padding_share(), padding / sum(side.size for side in sides))


# --- order -----------------------------------------------------------------------------------


def test_every_epoch_has_batches_of_the_same_sizes(plan):
    """As many batches, of as many rows, with the same lengths rounded up to 4."""

    def rounded_shapes(epoch):
        return Counter(
            (len(rows), *(-(-side.lengths[rows].max() // 4) for side in pairs))
            for pairs, rows in plan.epoch(epoch)
        )

    assert rounded_shapes(0).total() == len(plan)
    assert rounded_shapes(0) == rounded_shapes(1) == rounded_shapes(9)


def test_every_epoch_has_the_same_shapes_without_rounding(pairs):
    plan = plan_of(pairs, bucket_width=1)
    batches = first_batches(plan, 2 * len(plan))
    shapes = [(source.shape, target.shape) for source, target in batches]
    assert Counter(shapes[: len(plan)]) == Counter(shapes[len(plan) :])
    assert shapes[: len(plan)] != shapes[len(plan) :]  # in another order


def test_order_is_a_function_of_seed_and_epoch(plan):
    def order(seed, epoch):
        return numbers(BatchPlan(plan.store, BUDGET, 4, seed), epoch)

    assert order(3, 1) == order(3, 1) == numbers(plan, 1)
    assert len({str(order(*which)) for which in [(3, 0), (3, 1), (4, 0), (4, 1)]}) == 4


@pytest.mark.parametrize(("seed", "epoch"), [(3, 0), (3, 2), (8, 1)])
def test_order_of_one_shard_by_the_rule(pairs, seed, epoch):
    """Oracle: NumPy's sort by two keys, and batches cut where they ended in the first epoch."""
    rng = np.random.default_rng((seed, epoch))
    source, target = (-(-side.lengths // 4) for side in pairs)
    shuffled = rng.permutation(len(source))
    keys = (np.where(target % 2 == 1, -source, source), target)
    order = shuffled[np.lexsort([key[shuffled] for key in keys])]
    plan = plan_of(pairs, bucket_width=4, seed=seed)
    found = numbers(plan, epoch)
    place = {pair + 1: n for n, pair in enumerate(order.tolist())}
    in_order = sorted(found, key=lambda batch: place[batch[0]])
    assert list(itertools.chain(*in_order)) == (order + 1).tolist()
    assert [found[n] for n in np.argsort(rng.permutation(len(found)))] == in_order


def test_pairs_change_company_between_epochs(pairs):
    """Not only the order of batches changes: so do most of the batches."""
    plan = plan_of(pairs, bucket_width=4)
    first, second = ({frozenset(batch) for batch in numbers(plan, e)} for e in (0, 1))
    assert len(first & second) < len(first) / 2


@pytest.mark.parametrize("passes", [0.0, 0.2, 0.7, 1.0, 2.3])
def test_starting_at_a_batch_is_skipping_those_before(plan, passes):
    start, count = int(passes * len(plan)), len(plan) + 5  # into the epoch after
    skipped = first_batches(plan, start + count)[start:]
    assert_same_batches(first_batches(plan, count, start), skipped)


def test_batches_go_through_the_epochs(plan):
    expected = [*numbers(plan, 0), *numbers(plan, 1)]
    for (source, _), batch in zip(plan.batches(), expected, strict=False):
        assert source[:, 0].tolist() == batch


def shards_of(plan, shards, epoch) -> list[int]:
    """Which shard each batch of an epoch is of."""
    firsts = [int(shard.sources.ids[0]) for shard in shards]
    return [bisect.bisect(firsts, batch[0]) - 1 for batch in numbers(plan, epoch)]


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_an_epoch_goes_through_four_shards_at_a_time(shards, epoch):
    plan = plan_of(*shards, seed=3)
    order = shards_of(plan, shards, epoch)
    seen = list(dict.fromkeys(order))  # in the order of their first batch
    groups = [set(seen[start : start + 4]) for start in (0, 4, 8)]
    sizes = [sum(order.count(shard) for shard in group) for group in groups]
    assert set().union(*groups) == set(range(10))
    for group, start, size in zip(groups, np.cumsum([0, *sizes]), sizes, strict=False):
        assert set(order[start : start + size]) == group
        changes = sum(a != b for a, b in itertools.pairwise(order[start : start + size]))
        assert changes > size / 4  # of shards: they are shuffled together
    if epoch == 0:
        assert groups == [set(range(4)), set(range(4, 8)), {8, 9}]


def test_shards_change_company_between_epochs(shards):
    plan = plan_of(*shards, seed=3)
    starts = [frozenset(shards_of(plan, shards, epoch)[:20]) for epoch in range(6)]
    assert len(set(starts)) > 3


class OpeningStore(TokenStore):
    """Knows which shards were opened, and how many are still held."""

    def __init__(self, folder=None):
        super().__init__(folder)
        self.opened = []
        self.held = weakref.WeakSet()

    def shard(self, number):
        sources, targets = super().shard(number)
        self.opened.append(number)
        rows = IdRows(sources.ids, sources.lengths)
        self.held.add(rows)
        return TokenPairs(rows, targets)


def test_few_shards_are_open_at_a_time(shards):
    store = OpeningStore.of(*shards)
    plan = BatchPlan(store, BUDGET, 4, seed=3)
    most = 0
    for _ in plan.epoch(1):
        most = max(most, len(store.held))
    assert most <= batching.MIXED + 1  # one group, and a batch of the one before


def test_first_epoch_begins_before_all_shards_are_made(shards):
    """Oracle: the order when all were made before."""
    store = TokenStore()
    for shard in shards[:4]:
        store.add(shard)
    plan = BatchPlan(store, BUDGET, 4, seed=3)
    begun = plan.epoch(0)
    whole = numbers(plan_of(*shards, bucket_width=4, seed=3), 0)
    first = [next(begun).rows.tolist() for _ in range(20)]
    assert plan.summary() == "counted when all pairs are tokenised"
    for shard in shards[4:]:
        store.add(shard)
    store.finish()
    assert [len(rows) for rows in first] == [len(batch) for batch in whole[:20]]
    assert len(first) + sum(1 for _ in begun) == len(whole) == len(plan)


# --- ahead of training -----------------------------------------------------------------------


def test_what_is_made_ahead_comes_in_order():
    """The earlier, the slower made: whoever is done first must wait."""

    def slow(number):
        time.sleep((number % 7 == 0) * 0.01)
        return number

    assert list(made_ahead(slow, range(100))) == list(range(100))


def test_no_more_is_made_ahead_than_agreed():
    taken = []
    made = made_ahead(lambda n: n, (taken.append(n) or n for n in itertools.count()))
    assert [next(made) for _ in range(3)] == [0, 1, 2]
    assert len(taken) == 3 + batching._AHEAD
    made.close()


def test_an_error_ahead_is_raised_in_its_turn():
    made = made_ahead(lambda n: 1 // (2 - n), range(5))
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_batches_made_ahead_are_those_made_one_by_one(plan):
    expected = [batching._filled(members) for members in plan.epoch(0)]
    assert_same_batches(list(plan.one_pass()), expected)
