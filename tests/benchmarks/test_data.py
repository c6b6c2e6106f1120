"""benchmarks/data: its streams, and the tokens that its speed counts."""

import importlib

from benchmarks.data.memory import generated_numbers
from benchmarks.data.pipeline import target_tokens_of_an_epoch


def test_generated_numbers_are_as_many_as_asked_for_and_the_same_in_every_pass():
    stream = generated_numbers(25)
    pairs = list(stream)
    assert pairs == list(stream)
    assert len(pairs) == 25
    assert all(1 <= len(target.split()) <= 6 for _, target in pairs)  # German: a word per number


def test_padding_is_not_counted():
    """Two targets of 3 and 4 tokens are 7, though a batch has room for 8."""
    batching = importlib.import_module("tf_transformer.data.batching")
    tokens = importlib.import_module("tf_transformer.data.tokens")
    store = importlib.import_module("tf_transformer.data.store")
    sides = (tokens.IdRows.from_lists(rows) for rows in ([[5], [5]], [[6] * 3, [6] * 4]))
    plan = batching.BatchPlan(store.TokenStore.of(tokens.TokenPairs(*sides)), 20, 2, seed=1)
    assert target_tokens_of_an_epoch(plan, epoch=0) == 7
