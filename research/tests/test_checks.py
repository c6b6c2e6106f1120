"""research/agreement and research/contract: comparisons of translations, by hand."""

import pytest

from research import agreement, contract
from tf_transformer.decoding import NEG_INF


@pytest.mark.parametrize(
    ("run", "export", "reason"),
    [
        ((-1.0, -1.0005), (-1.0, -2.0), "tie"),
        ((-1.0, -2.0), (-2.0, -1.0), "rounded weights"),
        ((-1.0, -2.0), (-1.0, -2.0), "search"),
    ],
)
def test_the_reason_of_a_difference_follows_from_the_scores(run, export, reason):
    assert agreement.Difference("source", "ours", "theirs", run, export).reason() == reason


def test_an_export_is_compared_by_the_hypotheses_that_were_found():
    """A place without a hypothesis is an empty string with the score NEG_INF."""
    ours = [{"translations": ["a"], "scores": [-1.0]}, {"translation": "x", "score": [-1.0]}]
    theirs = [
        {"translations": ["a", ""], "scores": [-1.25, NEG_INF]},
        {"translation": "y", "score": -1.0},
    ]
    assert contract.compare(ours, theirs) == (1, 0.25)


def test_every_way_of_batching_has_each_row_once():
    for batches in contract.ways(100):
        assert sorted(batches.order) == list(range(100)), batches.name
