"""Rows of ids, and tokenising shard by shard."""

from collections import Counter

import numpy as np
import pytest
from tf_transformer.data.corpus import Corpus

from tf_transformer.data import tokens
from tf_transformer.data.tokens import IdRows, tokenise
from tf_transformer.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["ab " * 20], vocabulary_size=300)


def rows_of(side: IdRows) -> list[list[int]]:
    return [
        side.padded(np.array([n]))[0].tolist() if length else []
        for n, length in enumerate(side.lengths)
    ]


# --- rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.uint16])
def test_rows_are_padded_to_the_longest(dtype):
    rows = IdRows.from_lists([[5, 6, 7], [8], [], [9, 9]], dtype)
    np.testing.assert_array_equal(rows.lengths, [3, 1, 0, 2])
    padded = rows.padded(np.array([3, 1, 2]))
    np.testing.assert_array_equal(padded, [[9, 9], [8, 0], [0, 0]])
    assert padded.dtype == np.int32
    assert rows.ids.dtype == dtype


def test_joined_rows_are_those_of_all_parts():
    parts = [[[1, 2], []], [[3]], [[4, 5, 6]]]
    joined = IdRows.joined([IdRows.from_lists(part) for part in parts])
    assert rows_of(joined) == [row for part in parts for row in part]


# --- tokenising ------------------------------------------------------------------------------


def test_tokenised_corpus_keeps_its_pairs(tokenizer):
    corpus = Corpus(["ab", "b ab"], ["a", "ab b a"], Counter({"empty side": 2}))
    skipped = Counter()
    (pairs,) = tokenise(corpus.stream(), tokenizer, 50, 10, skipped)
    assert pairs.num_pairs == 2
    assert skipped == {"empty side": 2}
    for rows, texts in zip(pairs, (corpus.sources, corpus.targets), strict=True):
        assert rows_of(rows) == [tokenizer.encode(text) for text in texts]


def test_pairs_too_long_on_either_side_are_counted(tokenizer):
    """ "x" is unknown: a blank, a byte each, and the end token make n + 2 ids."""
    sources, targets = ["xxx", "xxxx", "x", "x"], ["xx", "x", "xxxx", "x"]
    corpus = Corpus(sources, targets, Counter({"empty side": 1}))
    skipped = Counter()
    (pairs,) = tokenise(corpus.stream(), tokenizer, 5, 10, skipped)
    np.testing.assert_array_equal(pairs.sources.lengths, [5, 3])
    np.testing.assert_array_equal(pairs.targets.lengths, [4, 3])
    assert skipped == {"empty side": 1, "longer than 5 tokens": 2}


def test_shards_hold_the_pairs_in_order(tokenizer, monkeypatch):
    """3 pairs are tokenised at a time, so a shard of at least 7 has 9, or fewer when some go."""
    monkeypatch.setattr(tokens, "_CHUNK", 3)
    corpus = Corpus(["a" * n for n in range(1, 31)], ["b"] * 30)
    skipped = Counter()
    shards = list(tokenise(corpus.stream(), tokenizer, 27, 7, skipped))
    expected = [tokenizer.encode(text) for text in corpus.sources]
    kept = [row for row in expected if len(row) <= 27]
    assert [row for shard in shards for row in rows_of(shard.sources)] == kept
    assert all(7 <= shard.num_pairs < 10 for shard in shards[:-1])
    assert sum(skipped.values()) == 30 - len(kept) > 0


def test_ids_take_two_bytes_where_two_suffice(tokenizer):
    (pairs,) = tokenise(Corpus(["a"], ["b"]).stream(), tokenizer, 9, 9, Counter())
    assert {rows.ids.dtype for rows in pairs} == {np.dtype("uint16")}


def test_no_more_text_is_read_than_a_shard_needs(tokenizer, monkeypatch):
    monkeypatch.setattr(tokens, "_CHUNK", 3)
    read = []
    corpus = Corpus(["a"] * 30, ["b"] * 30).stream()
    counted = type(corpus)(lambda skipped: (read.append(p) or p for p in corpus), "counted")
    next(tokenise(counted, tokenizer, 9, 6, Counter()))
    assert len(read) == 6
