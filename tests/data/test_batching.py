"""Batches of ids: nothing lost, nothing over budget, and an order that can be recomputed."""

import bisect
import itertools
import time
import weakref
from collections import Counter

import numpy as np
import pytest

from tf_transformer.data import batch_sampler, shard_sampler
from tf_transformer.data.batch_sampler import AHEAD, WINDOW, BatchSampler, evenly_divided, prefetch
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import IdRows, TokenExamples

BUDGET = 100


def examples_of_lengths(first=1, **lengths) -> TokenExamples:
    """Example n holds the id first + n only, so that batches can be traced back to examples."""
    return TokenExamples(
        {
            name: IdRows.from_lists([[n] * length for n, length in enumerate(each, start=first)])
            for name, each in lengths.items()
        }
    )


def pairs_of_lengths(source_lengths, target_lengths, first=1) -> TokenExamples:
    return examples_of_lengths(first, source=source_lengths, target=target_lengths)


def sampler_of(*shards, batch_tokens=BUDGET, bucket_width=2, seed=1) -> BatchSampler:
    return BatchSampler(TokenStore.of(*shards), batch_tokens, bucket_width, seed)


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
def sampler(request, pairs, shards):
    store = [pairs] if request.param == "one shard" else shards
    return sampler_of(*store, bucket_width=4, seed=3)


def numbers(sampler, epoch) -> list[list[int]]:
    """The ids of the examples of each batch."""
    return [batch.padded()[sampler.names[0]][:, 0].tolist() for batch in sampler.epoch(epoch)]


def first_batches(sampler, count, start=0):
    batches = sampler.batches(start)
    return [next(batches) for _ in range(count)]


def assert_same_batches(some, others):
    for one, other in zip(some, others, strict=True):
        assert list(one) == list(other)
        for name, ids in one.items():
            np.testing.assert_array_equal(ids, other[name])


# --- one epoch -------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_every_pair_is_in_an_epoch_once(sampler, epoch):
    seen = sorted(itertools.chain(*numbers(sampler, epoch)))
    assert seen == list(range(1, sampler.store.num_examples + 1))


def test_sides_of_a_batch_hold_the_same_pairs_in_full(pairs):
    seen = []
    for batch in sampler_of(pairs).one_epoch():
        np.testing.assert_array_equal(batch["source"][:, 0], batch["target"][:, 0])
        rows = batch["source"][:, 0] - 1
        seen.extend(rows)
        for name, ids in batch.items():
            np.testing.assert_array_equal((ids != 0).sum(axis=1), pairs[name].lengths[rows])
            expected = np.where(ids != 0, ids[:, :1], 0)  # the id, then padding
            np.testing.assert_array_equal(ids, expected)
    assert sorted(seen) == list(range(len(pairs)))


@pytest.mark.parametrize("bucket_width", [1, 2, 8])
def test_budget_is_never_exceeded(pairs, bucket_width):
    sampler = sampler_of(pairs, bucket_width=bucket_width)
    batches = first_batches(sampler, 2 * len(sampler))
    sizes = [[ids.size for ids in batch.values()] for batch in batches]
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
    assert shard_sampler._cuts(longest, counts, budget) == cuts


def test_pair_longer_than_the_budget_is_a_batch_of_one():
    sampler = sampler_of(pairs_of_lengths([3, 200, 3], [3, 2, 3]))
    shapes = sorted(batch["source"].shape for batch in sampler.one_epoch())
    assert shapes == [(1, 200), (2, 3)]


def test_corpus_of_one_pair():
    sampler = sampler_of(pairs_of_lengths([2], [3]))
    assert len(sampler) == 1
    for batch in first_batches(sampler, 3):
        np.testing.assert_array_equal(batch["source"], [[1, 1]])
        np.testing.assert_array_equal(batch["target"], [[1, 1, 1]])
    assert sampler.padding_fraction() == 0.0


def test_batch_holds_pairs_of_like_lengths(pairs):
    """Random batches of this corpus would be almost half padding."""
    assert sampler_of(pairs, bucket_width=4).padding_fraction() < 0.15


def test_padding_fraction_by_hand():
    """Budget 6: the pairs (1, 1) and (2, 3) share a batch, (6, 5) has its own.

    Ids: 3 + 4 and 6 + 5 = 18. Padded: 2 · 2 + 2 · 3 and 6 + 5 = 21. Padding: 3 / 21.
    """
    sampler = sampler_of(pairs_of_lengths([1, 2, 6], [1, 3, 5]), batch_tokens=6, bucket_width=1)
    assert sorted(b["source"].shape for b in sampler.one_epoch()) == [(1, 6), (2, 2)]
    np.testing.assert_allclose(sampler.padding_fraction(), 3 / 21)


def test_padding_fraction_is_that_of_the_batches(sampler):
    all_ids = [ids for batch in sampler.one_epoch() for ids in batch.values()]
    padding = sum(int((ids == 0).sum()) for ids in all_ids)
    fraction = padding / sum(ids.size for ids in all_ids)
    np.testing.assert_allclose(sampler.padding_fraction(), fraction)


# --- order -----------------------------------------------------------------------------------


def test_every_epoch_has_batches_of_the_same_sizes(sampler):
    """As many batches, of as many rows, with the same lengths rounded up to 4."""

    def rounded_shapes(epoch):
        return Counter(
            (len(rows), *(-(-each.lengths[rows].max() // 4) for each in examples.rows.values()))
            for examples, rows in sampler.epoch(epoch)
        )

    assert rounded_shapes(0).total() == len(sampler)
    assert rounded_shapes(0) == rounded_shapes(1) == rounded_shapes(9)


def test_every_epoch_has_the_same_shapes_without_rounding(pairs):
    sampler = sampler_of(pairs, bucket_width=1)
    batches = first_batches(sampler, 2 * len(sampler))
    shapes = [tuple(ids.shape for ids in batch.values()) for batch in batches]
    assert Counter(shapes[: len(sampler)]) == Counter(shapes[len(sampler) :])
    assert shapes[: len(sampler)] != shapes[len(sampler) :]  # in another order


def test_order_is_a_function_of_seed_and_epoch(sampler):
    def order(seed, epoch):
        return numbers(BatchSampler(sampler.store, BUDGET, 4, seed), epoch)

    assert order(3, 1) == order(3, 1) == numbers(sampler, 1)
    assert len({str(order(*which)) for which in [(3, 0), (3, 1), (4, 0), (4, 1)]}) == 4


@pytest.mark.parametrize(("seed", "epoch"), [(3, 0), (3, 2), (8, 1)])
def test_order_of_one_shard_by_the_rule(pairs, seed, epoch):
    """Oracle: NumPy's sort by two keys, and batches cut where they ended in the first epoch."""
    rng = np.random.default_rng((seed, epoch))
    source, target = (-(-rows.lengths // 4) for rows in pairs.rows.values())
    shuffled = rng.permutation(len(source))
    keys = (np.where(target % 2 == 1, -source, source), target)
    order = shuffled[np.lexsort([key[shuffled] for key in keys])]
    sampler = sampler_of(pairs, bucket_width=4, seed=seed)
    found = numbers(sampler, epoch)
    place = {pair + 1: n for n, pair in enumerate(order.tolist())}
    in_order = sorted(found, key=lambda batch: place[batch[0]])
    assert list(itertools.chain(*in_order)) == (order + 1).tolist()
    assert [found[n] for n in np.argsort(rng.permutation(len(found)))] == in_order


def test_most_batches_hold_other_examples_in_the_next_epoch(pairs):
    """The order of batches changes, and so do most of the batches."""
    sampler = sampler_of(pairs, bucket_width=4)
    first, second = ({frozenset(batch) for batch in numbers(sampler, e)} for e in (0, 1))
    assert len(first & second) < len(first) / 2


@pytest.mark.parametrize("passes", [0.0, 0.2, 0.7, 1.0, 2.3])
def test_starting_at_a_batch_is_skipping_those_before(sampler, passes):
    start, count = int(passes * len(sampler)), len(sampler) + 5  # into the epoch after
    skipped = first_batches(sampler, start + count)[start:]
    assert_same_batches(first_batches(sampler, count, start), skipped)


def longer(number, examples):
    """Each row in its own id, as it was, with up to 30 ids more; a function of the number."""
    rng = np.random.default_rng(number)
    ids = {name: rows.ids[np.cumsum(rows.lengths) - 1] for name, rows in examples.rows.items()}
    added = {name: rng.integers(0, 30, len(examples)) for name in examples.rows}
    return TokenExamples(
        {
            name: IdRows(np.repeat(ids[name], lengths), lengths)
            for name, rows in examples.rows.items()
            for lengths in [rows.lengths + added[name]]
        }
    )


def test_augmented_batches_hold_the_examples_of_their_window(pairs):
    store = TokenStore.of(pairs)
    plain, augmented = (BatchSampler(store, BUDGET, 4, 3, each) for each in (None, longer))
    count = 4 * WINDOW  # into the next epoch
    expected = first_batches(plain, count)
    found = first_batches(augmented, count)
    for first in range(0, count, WINDOW):
        window = slice(first, first + WINDOW)
        examples = [
            sorted(itertools.chain(*(batch["source"][:, 0] for batch in batches[window])))
            for batches in (expected, found)
        ]
        assert examples[0] == examples[1]
    assert_same_batches(augmented.one_epoch(), plain.one_epoch())


@pytest.mark.parametrize("start", [1, WINDOW - 1, WINDOW, 3 * WINDOW + 2])
def test_starting_at_an_augmented_batch_is_skipping_those_before(pairs, start):
    augmented = BatchSampler(TokenStore.of(pairs), BUDGET, 4, 3, longer)
    skipped = first_batches(augmented, start + 5)[start:]
    assert_same_batches(first_batches(augmented, 5, start), skipped)


def test_augmented_batches_are_of_similar_sizes_and_lengths(pairs):
    augmented = BatchSampler(TokenStore.of(pairs), 1000, 4, 3, longer)
    ids = [batch["target"] for batch in first_batches(augmented, WINDOW)]
    sizes = [each.size for each in ids]
    assert max(sizes) < 1.6 * np.mean(sizes)
    assert sum((each != 0).sum() for each in ids) > 0.8 * sum(sizes)


@pytest.mark.parametrize("lengths", [[1, 1, 1], [100, 1, 1, 1], [1, 1, 1, 100], [5, 1, 9, 1, 1, 1]])
def test_evenly_divided_batches_are_as_many_as_asked_and_hold_every_example(lengths):
    batches = evenly_divided(examples_of_lengths(source=lengths), 3, bucket_width=1, seed=1)
    assert len(batches) == 3
    assert all(len(batch.rows) for batch in batches)
    assert sorted(np.concatenate([batch.rows for batch in batches])) == list(range(len(lengths)))


def test_batches_go_through_the_epochs(sampler):
    expected = [*numbers(sampler, 0), *numbers(sampler, 1)]
    for batch, rows in zip(sampler.batches(), expected, strict=False):
        assert batch["source"][:, 0].tolist() == rows


def shards_of(sampler, shards, epoch) -> list[int]:
    """The shard of each batch of an epoch."""
    firsts = [int(shard["source"].ids[0]) for shard in shards]
    return [bisect.bisect(firsts, batch[0]) - 1 for batch in numbers(sampler, epoch)]


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_an_epoch_goes_through_four_shards_at_a_time(shards, epoch):
    sampler = sampler_of(*shards, seed=3)
    order = shards_of(sampler, shards, epoch)
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


def test_shards_are_grouped_anew_in_every_epoch(shards):
    sampler = sampler_of(*shards, seed=3)
    starts = [frozenset(shards_of(sampler, shards, epoch)[:20]) for epoch in range(6)]
    assert len(set(starts)) > 3


class OpeningStore(TokenStore):
    """Records which shards were opened, and how many are still in memory."""

    def __init__(self, folder=None):
        super().__init__(folder)
        self.opened = []
        self.held = weakref.WeakSet()

    def shard(self, number):
        examples = super().shard(number)
        self.opened.append(number)
        rows = IdRows(examples["source"].ids, examples["source"].lengths)
        self.held.add(rows)
        return TokenExamples({"source": rows, "target": examples["target"]})


def test_few_shards_are_open_at_a_time(shards):
    store = OpeningStore.of(*shards)
    sampler = BatchSampler(store, BUDGET, 4, seed=3)
    most = 0
    for _ in sampler.epoch(1):
        most = max(most, len(store.held))
    assert most <= batch_sampler.OPEN_SHARDS + 1  # one group, and a batch of the one before


def test_first_epoch_begins_before_all_shards_are_made(shards):
    """Oracle: the order when all were made before."""
    store = TokenStore()
    for shard in shards[:4]:
        store.add(shard)
    sampler = BatchSampler(store, BUDGET, 4, seed=3)
    begun = sampler.epoch(0)
    whole = numbers(sampler_of(*shards, bucket_width=4, seed=3), 0)
    first = [next(begun).rows.tolist() for _ in range(20)]
    assert sampler.summary() == "counted when all examples are tokenised"
    for shard in shards[4:]:
        store.add(shard)
    store.finish()
    assert [len(rows) for rows in first] == [len(batch) for batch in whole[:20]]
    assert len(first) + sum(1 for _ in begun) == len(whole) == len(sampler)


# --- examples of other fields ----------------------------------------------------------------


def test_examples_of_one_field():
    """Every example once, within the budget, sorted by length: hardly any padding."""
    lengths = np.random.default_rng(1).integers(1, 40, 500)
    sampler = sampler_of(examples_of_lengths(text=lengths), bucket_width=1)
    assert sampler.names == ("text",)
    batches = list(sampler.one_epoch())
    seen = np.concatenate([batch["text"][:, 0] for batch in batches])
    assert sorted(seen) == list(range(1, 501))
    assert all(batch["text"].size <= BUDGET for batch in batches)
    assert sampler.padding_fraction() < 0.02


def test_examples_of_three_fields():
    """Similar lengths of all three: random batches would be half padding."""
    pairs = random_pairs(500)
    examples = TokenExamples({**pairs.rows, "tags": pairs["target"]})
    sampler = sampler_of(examples, bucket_width=4)
    seen = []
    for batch in sampler.one_epoch():
        np.testing.assert_array_equal(batch["target"], batch["tags"])
        np.testing.assert_array_equal(batch["target"][:, 0], batch["source"][:, 0])
        seen.extend(batch["tags"][:, 0])
    assert sorted(seen) == list(range(1, 501))
    assert sampler.padding_fraction() < 0.15


# --- prefetch --------------------------------------------------------------------------------


def test_prefetched_results_come_in_order():
    """Some items take longer: the others wait for them."""

    def slow(number):
        time.sleep((number % 7 == 0) * 0.01)
        return number

    assert list(prefetch(slow, range(100))) == list(range(100))


def test_prefetch_has_a_limit():
    taken = []
    results = prefetch(lambda n: n, (taken.append(n) or n for n in itertools.count()))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(taken) == 3 + AHEAD
    results.close()


def test_an_error_is_raised_in_the_place_of_its_result():
    results = prefetch(lambda n: 1 // (2 - n), range(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_prefetched_batches_are_those_made_one_by_one(sampler):
    expected = [indices.padded() for indices in sampler.epoch(0)]
    assert_same_batches(list(sampler.one_epoch()), expected)
