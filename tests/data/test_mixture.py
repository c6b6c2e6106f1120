"""Several corpora as one text: each example as often as its weight says, in a computable order."""

from collections import Counter

import numpy as np
import pytest
from data.test_batching import BUDGET, assert_same_batches, first_batches, random_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.data.batch_sampler import WINDOW, BatchSampler
from tf_transformer.data.mixture import Component, Mixture
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import IdRows, TokenExamples

SIZES = (120, 40, 90)
FIRSTS = (1, 121, 161)  # ids of their examples
WEIGHTS = (1, 2.5, 0.3)


def stores():
    """Three corpora, one of them in two shards. Example n of all holds the id n + 1 only."""
    one, two, three = (random_pairs(size, first) for size, first in zip(SIZES, FIRSTS, strict=True))
    parts = one.taken(np.arange(70)), one.taken(np.arange(70, 120))
    return [TokenStore.of(*parts), TokenStore.of(two), TokenStore.of(three)]


def mixture_of(weights=WEIGHTS, shard_examples=1000, temperature=1.0) -> Mixture:
    components = zip("abc", stores(), weights, strict=True)
    return Mixture([Component(*each) for each in components], shard_examples, 3, temperature)


@pytest.fixture(params=[1000, 60], ids=["one shard", "five shards"])
def sampler(request):
    return BatchSampler(mixture_of(shard_examples=request.param), BUDGET, 4, seed=3)


def ids_of_epochs(sampler, *epochs) -> Counter:
    batches = (batch.padded() for epoch in epochs for batch in sampler.epoch(epoch))
    return Counter(row[0] for batch in batches for row in batch["source"])


def corpus_counts(counts) -> list[list[int]]:
    """The counts of the examples of each corpus."""
    ranges = (range(first, first + size) for first, size in zip(FIRSTS, SIZES, strict=True))
    return [[counts[i] for i in ids] for ids in ranges]


@pytest.mark.parametrize("epochs", [1, 2, 3, 10])
def test_each_example_is_seen_as_often_as_its_weight_says(sampler, epochs):
    drawn = corpus_counts(ids_of_epochs(sampler, *range(epochs)))
    for weight, counts, size in zip(WEIGHTS, drawn, SIZES, strict=True):
        assert {*counts} <= {int(epochs * weight), int(np.ceil(epochs * weight))}
        shards = sampler.store.num_shards()
        assert abs(sum(counts) - epochs * weight * size) <= shards


def test_each_batch_keeps_the_budget_and_most_mix_corpora(sampler):
    corpora = []
    for epoch in range(3):
        for examples, rows in sampler.epoch(epoch):
            lengths = [each.lengths[rows].max() for each in examples.rows.values()]
            assert max(lengths) * len(rows) <= BUDGET or len(rows) == 1
            ids = examples["source"].padded(rows)[:, 0]
            corpora.append(len({*np.searchsorted(FIRSTS, ids, side="right")}))
    assert np.mean(corpora) > 1.5


@pytest.mark.parametrize("passes", [0.0, 0.4, 1.0, 1.7, 4.2])
def test_starting_at_a_batch_is_skipping_those_before(sampler, passes):
    start, count = int(passes * len(sampler)), len(sampler) + 5
    skipped = first_batches(sampler, start + count)[start:]
    assert_same_batches(first_batches(sampler, count, start), skipped)
    again = BatchSampler(sampler.store, BUDGET, 4, seed=3)
    assert_same_batches(first_batches(again, count, start), skipped)


def test_epochs_are_counted_by_their_batches(sampler):
    sizes = [len(list(sampler.epoch(epoch))) for epoch in range(3)]
    assert len(sampler) == sizes[0]
    assert [sampler.epochs(sum(sizes[:n])) for n in range(4)] == [0, 1, 2, 3]
    assert sampler.epochs(sizes[0] + 2) == 1 + 2 / sizes[1]


def test_equal_weights_in_one_shard_are_the_text_of_all_corpora():
    """So an earlier run on several corpora resumes with its batches."""
    mixed = BatchSampler(mixture_of((1, 1, 1)), BUDGET, 4, seed=3)
    joined = TokenExamples.concatenated(
        [store.shard(i) for store in stores() for i in range(store.num_shards())]
    )
    alone = BatchSampler(TokenStore.of(joined), BUDGET, 4, seed=3)
    assert len(mixed) == len(alone)
    assert_same_batches(first_batches(mixed, 2 * len(mixed)), first_batches(alone, 2 * len(alone)))


def test_each_shard_has_its_part_of_each_corpus():
    mixture = mixture_of(shard_examples=60)
    shards = [mixture.shard(number) for number in range(mixture.num_shards())]
    ids = [shard["source"].padded(np.arange(len(shard)))[:, 0] for shard in shards]
    assert sorted(np.concatenate(ids)) == list(range(1, sum(SIZES) + 1))
    for size, first in zip(SIZES, FIRSTS, strict=True):
        counts = [sum((first <= own) & (own < first + size)) for own in ids]
        assert max(counts) - min(counts) <= 1
    assert not mixture.has_shard(len(shards))


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_a_temperature_raises_the_shares_of_small_corpora(temperature):
    mixture = mixture_of((1, 1, 1), temperature=temperature)
    seen = np.array([corpus.seen for corpus in mixture.exposure(1)])
    expected = np.array(SIZES) ** (1 / temperature)
    np.testing.assert_allclose(seen / seen.sum(), expected / expected.sum())
    assert min(mixture.weights) == 1


def test_exposure_is_what_the_batches_hold(sampler):
    """After epochs in which each corpus has whole draws, up to rounding in each shard."""
    drawn = corpus_counts(ids_of_epochs(sampler, *range(10)))
    for corpus, counts, size in zip(sampler.store.exposure(10), drawn, SIZES, strict=True):
        assert corpus.pairs == corpus.distinct == size
        assert corpus.seen == sum(counts)
        assert corpus.per_pair == pytest.approx(np.mean(counts))
    assert sampler.store.whole_pass == 4
    assert 0 not in ids_of_epochs(sampler, *range(4)).values()
    assert len(ids_of_epochs(sampler, *range(4))) == sum(SIZES)


PAIRS = st.lists(st.tuples(*[st.lists(st.integers(1, 3), min_size=1, max_size=3)] * 2), min_size=1)


@settings(max_examples=50)
@given(PAIRS)
def test_distinct_pairs_are_counted_by_both_sides(pairs):
    store = TokenStore()
    for part in filter(None, (pairs[:2], pairs[2:])):
        rows = map(IdRows.from_lists, zip(*part, strict=True))
        store.add(TokenExamples(dict(zip(("source", "target"), rows, strict=True))))
    store.finish()
    (corpus,) = Mixture([Component("a", store, 3.0)], 100, seed=1).exposure(2)
    distinct = {(tuple(source), tuple(target)) for source, target in pairs}
    assert (corpus.pairs, corpus.distinct) == (len(pairs), len(distinct))
    assert corpus.per_pair == pytest.approx(6 * len(pairs) / len(distinct))


def test_the_plan_of_a_training_draws_one_epoch(sampler, monkeypatch):
    """Epochs that the training has not reached count as the first."""
    drawn, draws = set(), Mixture.draws
    monkeypatch.setattr(
        Mixture, "draws", lambda self, *place: drawn.add(place[1]) or draws(self, *place)
    )
    assert sampler.epochs(100 * len(sampler)) == 100
    assert drawn == {0}


def test_examples_that_augmentation_leaves_out_do_not_count_as_seen():
    """Sources three times as long need more batches than there are, so some are left out."""

    def longer(number, examples):
        lengths = examples["source"].lengths
        source = IdRows.from_lists([[7] * int(3 * length) for length in lengths])
        return TokenExamples({**examples.rows, "source": source})

    mixture = mixture_of((1, 2, 1))
    sampler = BatchSampler(mixture, BUDGET, 4, seed=3, augment=longer, keeps_budget=True)
    count = WINDOW * 2
    batches = first_batches(sampler, count)
    seen = sum(len(batch["source"]) for batch in batches)
    left_out = sampler.left_out(0, count)
    assert 0.2 < left_out / count < 0.8
    counted = sum(corpus.seen for corpus in sampler.exposure(count, left_out))
    assert counted == pytest.approx(seen, rel=0.1)
    assert sampler.left_out(0, WINDOW) + sampler.left_out(WINDOW, count) == left_out
    assert sampler.left_out(5, 5) == 0
