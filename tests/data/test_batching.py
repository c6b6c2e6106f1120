"""Batches of ids: nothing lost, nothing over budget, and an order that can be recomputed."""

from collections import Counter

import numpy as np
import pytest

from tf_transformer.data.batching import BatchPlan, IdRows, TokenPairs, as_dataset
from tf_transformer.data.corpus import Corpus
from tf_transformer.errors import InputError
from tf_transformer.tokenizer import Tokenizer

BUDGET = 100


def pairs_of_lengths(source_lengths, target_lengths) -> TokenPairs:
    """Pair number n holds the id n + 1 only, so that batches can be traced back to pairs."""
    sides = (
        IdRows([[n + 1] * length for n, length in enumerate(lengths)])
        for lengths in (source_lengths, target_lengths)
    )
    return TokenPairs(*sides, Counter())


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(1)
    sources = rng.integers(1, 40, 500)
    return pairs_of_lengths(sources, np.maximum(1, sources + rng.integers(-5, 6, 500)))


@pytest.fixture(scope="module")
def plan(pairs):
    return BatchPlan(pairs, batch_tokens=BUDGET, bucket_width=4, seed=3)


def first_batches(plan, count, start=0, **options):
    batches = plan.batches(start, **options)
    return [next(batches) for _ in range(count)]


def assert_same_batches(some, others):
    for one, other in zip(some, others, strict=True):
        for side, other_side in zip(one, other, strict=True):
            np.testing.assert_array_equal(side, other_side)


# --- rows ------------------------------------------------------------------------------------


def test_rows_are_padded_to_the_longest():
    rows = IdRows([[5, 6, 7], [8], [], [9, 9]])
    np.testing.assert_array_equal(rows.lengths, [3, 1, 0, 2])
    padded = rows.padded(np.array([3, 1]), num_rows=3)
    np.testing.assert_array_equal(padded, [[9, 9], [8, 0], [0, 0]])
    assert padded.dtype == np.int32


# --- one epoch -------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_every_pair_is_in_an_epoch_once(pairs, plan, epoch):
    numbers = np.concatenate(plan.epoch(epoch))
    np.testing.assert_array_equal(np.sort(numbers), np.arange(len(pairs)))


def test_sides_of_a_batch_hold_the_same_pairs_in_full(pairs, plan):
    seen = []
    for source, target in plan.one_pass():
        np.testing.assert_array_equal(source[:, 0], target[:, 0])
        numbers = source[:, 0] - 1
        seen.extend(numbers)
        for side, rows in ((source, pairs.sources), (target, pairs.targets)):
            np.testing.assert_array_equal((side != 0).sum(axis=1), rows.lengths[numbers])
            expected = np.where(side != 0, side[:, :1], 0)  # the id, then padding
            np.testing.assert_array_equal(side, expected)
    assert sorted(seen) == list(range(len(pairs)))


@pytest.mark.parametrize("bucket_width", [1, 2, 8])
def test_budget_is_never_exceeded(pairs, bucket_width):
    plan = BatchPlan(pairs, BUDGET, bucket_width, seed=1)
    sizes = [(source.size, target.size) for source, target in first_batches(plan, 2 * len(plan))]
    assert np.max(sizes) <= BUDGET
    assert np.mean(sizes) > BUDGET / 2  # and most of it is used


def test_pair_longer_than_the_budget_is_a_batch_of_one():
    plan = BatchPlan(pairs_of_lengths([3, 200, 3], [3, 2, 3]), BUDGET, bucket_width=2, seed=1)
    shapes = sorted(source.shape for source, _ in plan.one_pass())
    assert shapes == [(1, 200), (2, 3)]


def test_corpus_of_one_pair():
    plan = BatchPlan(pairs_of_lengths([2], [3]), BUDGET, bucket_width=2, seed=1)
    assert len(plan) == 1
    for source, target in first_batches(plan, 3):
        np.testing.assert_array_equal(source, [[1, 1]])
        np.testing.assert_array_equal(target, [[1, 1, 1]])
    assert plan.padding_share() == 0.0


def test_batch_holds_pairs_of_like_lengths(plan):
    """Random batches of this corpus would be almost half padding."""
    assert plan.padding_share() < 0.15


def test_padding_share_by_hand():
    """Budget 6: the pairs (1, 1) and (2, 3) share a batch, (6, 5) has its own.

    Ids: 3 + 4 and 6 + 5 = 18. Room: 2 · 2 + 2 · 3 and 6 + 5 = 21. Padding: 3 / 21.
    """
    plan = BatchPlan(pairs_of_lengths([1, 2, 6], [1, 3, 5]), 6, bucket_width=1, seed=1)
    assert sorted(source.shape for source, _ in plan.one_pass()) == [(1, 6), (2, 2)]
    np.testing.assert_allclose(plan.padding_share(), 3 / 21)


# --- order -----------------------------------------------------------------------------------


def test_every_epoch_has_batches_of_the_same_sizes(pairs, plan):
    """As many batches, of as many rows, with the same lengths rounded up to 4."""

    def rounded_shapes(epoch):
        return Counter(
            (
                len(batch),
                *(-(-rows.lengths[batch].max() // 4) for rows in (pairs.sources, pairs.targets)),
            )
            for batch in plan.epoch(epoch)
        )

    assert rounded_shapes(0).total() == len(plan)
    assert rounded_shapes(0) == rounded_shapes(1) == rounded_shapes(9)


def test_every_epoch_has_the_same_shapes_without_rounding(pairs):
    plan = BatchPlan(pairs, BUDGET, bucket_width=1, seed=1)
    batches = first_batches(plan, 2 * len(plan))
    shapes = [(source.shape, target.shape) for source, target in batches]
    assert Counter(shapes[: len(plan)]) == Counter(shapes[len(plan) :])
    assert shapes[: len(plan)] != shapes[len(plan) :]  # in another order


def test_order_is_a_function_of_seed_and_epoch(pairs, plan):
    def order(seed, epoch):
        batches = BatchPlan(pairs, BUDGET, 4, seed).epoch(epoch)
        return np.concatenate(batches).tolist()

    assert order(3, 1) == order(3, 1) == np.concatenate(plan.epoch(1)).tolist()
    assert len({tuple(order(*which)) for which in [(3, 0), (3, 1), (4, 0), (4, 1)]}) == 4


def test_pairs_change_company_between_epochs(plan):
    """Not only the order of batches changes: so do most of the batches."""
    first, second = ({frozenset(batch.tolist()) for batch in plan.epoch(e)} for e in (0, 1))
    assert len(first & second) < len(first) / 2


@pytest.mark.parametrize("passes", [0.0, 0.4, 1.0, 2.3])
def test_starting_at_a_batch_is_skipping_those_before(plan, passes):
    start, count = int(passes * len(plan)), len(plan) + 5  # into the epoch after
    skipped = first_batches(plan, start + count)[start:]
    assert_same_batches(first_batches(plan, count, start), skipped)


def test_batches_go_through_the_epochs(pairs, plan):
    expected = [*plan.epoch(0), *plan.epoch(1)]
    for (source, _), numbers in zip(plan.batches(), expected, strict=False):
        np.testing.assert_array_equal(source[:, 0] - 1, numbers)


def test_row_multiple_fills_up_with_rows_of_padding(plan):
    count = len(plan)
    for plain, filled in zip(
        first_batches(plan, count), first_batches(plan, count, row_multiple=4), strict=True
    ):
        for side, filled_side in zip(plain, filled, strict=True):
            assert len(filled_side) == 4 * -(-len(side) // 4)
            np.testing.assert_array_equal(filled_side[: len(side)], side)
            assert not filled_side[len(side) :].any()


def test_dataset_yields_the_batches(plan):
    dataset = as_dataset(lambda: plan.batches(start=2, row_multiple=2))
    found = list(dataset.take(4).as_numpy_iterator())
    assert_same_batches(found, first_batches(plan, 4, start=2, row_multiple=2))
    assert {side.dtype for batch in found for side in batch} == {np.dtype("int32")}


# --- from text -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["ab " * 20], vocabulary_size=300)


def test_tokenised_corpus_keeps_its_pairs(tokenizer):
    corpus = Corpus(["ab", "b ab"], ["a", "ab b a"], Counter({"empty side": 2}))
    pairs = TokenPairs.from_corpus(corpus, tokenizer, max_length=50)
    assert len(pairs) == 2
    assert pairs.skipped == {"empty side": 2}
    for rows, texts in ((pairs.sources, corpus.sources), (pairs.targets, corpus.targets)):
        for n, text in enumerate(texts):
            assert rows.padded(np.array([n]), 1)[0].tolist() == tokenizer.encode(text)


def test_pairs_too_long_on_either_side_are_counted(tokenizer):
    """ "x" is unknown: a blank, a byte each, and the end token make n + 2 ids."""
    sources, targets = ["xxx", "xxxx", "x", "x"], ["xx", "x", "xxxx", "x"]
    corpus = Corpus(sources, targets, Counter({"empty side": 1}))
    pairs = TokenPairs.from_corpus(corpus, tokenizer, max_length=5)
    np.testing.assert_array_equal(pairs.sources.lengths, [5, 3])
    np.testing.assert_array_equal(pairs.targets.lengths, [4, 3])
    assert pairs.skipped == {"empty side": 1, "longer than 5 tokens": 2}


def test_all_pairs_too_long(tokenizer):
    with pytest.raises(InputError) as error:
        TokenPairs.from_corpus(Corpus(["xxx"] * 3, ["x"] * 3), tokenizer, max_length=4)
    assert str(error.value) == (
        "all 3 pairs are longer than data.max_length=4 tokens; raise it, or split the text "
        "into sentences."
    )
