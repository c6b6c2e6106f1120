"""Samples of a text: spread over all of it, whatever its order is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.data.examples import spread


@settings(max_examples=200)
@given(st.lists(st.integers(0, 300), max_size=6), st.integers(0, 400))
def test_each_corpus_has_its_share_of_a_sample(sizes, count):
    """Corpora one after another; each share is right to within one item at each of its ends."""
    items = [(corpus, line) for corpus, size in enumerate(sizes) for line in range(size)]
    sample = spread(items, count)
    assert sample == sorted(set(sample))  # each item once, in order
    assert len(sample) == min(count, len(items))
    for corpus, size in enumerate(sizes):
        drawn = sum(number == corpus for number, _ in sample)
        assert drawn == pytest.approx(size * len(sample) / max(1, len(items)), abs=2)


@given(st.integers(0, 300), st.integers(0, 400))
def test_columns_of_a_table_give_the_same_rows(size, count):
    columns = [[f"{side} {line}" for line in range(size)] for side in ("source", "target")]
    sources, targets = (spread(column, count) for column in columns)
    assert [text.replace("source", "target") for text in sources] == targets


def test_no_period_of_a_text_hides_in_a_sample():
    """Of a text with five captions for each picture, all five kinds are drawn about equally."""
    kinds = [line % 5 for line in spread(range(5000), 1000)]
    for kind in range(5):
        assert 160 < kinds.count(kind) < 240  # 200, and over 3 standard deviations
