"""benchmarks/data: its streams, and the tokens that its speed counts."""

from benchmarks.data.memory import generated_numbers
from benchmarks.data.pipeline import target_tokens_of_an_epoch
from tf_transformer.data.batch_sampler import BatchSampler
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import IdRows, TokenExamples


def test_generated_numbers_are_as_many_as_asked_for_and_the_same_in_every_pass():
    stream = generated_numbers(25)
    pairs = list(stream)
    assert pairs == list(stream)
    assert len(pairs) == 25
    assert all(1 <= len(target.split()) <= 6 for _, target in pairs)  # German: a word per number


def test_padding_is_not_counted():
    """Two targets of 3 and 4 tokens are 7, though a batch has room for 8."""
    rows = {"source": [[5], [5]], "target": [[6] * 3, [6] * 4]}
    examples = TokenExamples({name: IdRows.from_lists(ids) for name, ids in rows.items()})
    sampler = BatchSampler(TokenStore.of(examples), 20, 2, seed=1)
    assert target_tokens_of_an_epoch(sampler, epoch=0) == 7
