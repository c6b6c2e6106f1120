"""Rows of ids, and tokenising shard by shard."""

from collections import Counter

import numpy as np
import pytest

from tf_transformer.data import tokens
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.data.tokens import Encoder, IdRows, tokenise
from tf_transformer.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["ab " * 20], vocabulary_size=300)


@pytest.fixture(scope="module")
def encoder(tokenizer):
    def encode(texts):
        return {name: tokenizer.encode_batch(each) for name, each in texts.items()}

    return Encoder(encode, tokenizer.vocabulary_size, "test")


def pairs_of(sources, targets, skipped=()):
    return Examples({"source": sources, "target": targets}, Counter(skipped))


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


def test_concatenated_rows_are_those_of_all_parts():
    parts = [[[1, 2], []], [[3]], [[4, 5, 6]]]
    concatenated = IdRows.concatenated([IdRows.from_lists(part) for part in parts])
    assert rows_of(concatenated) == [row for part in parts for row in part]


# --- tokenising ------------------------------------------------------------------------------


def test_tokenised_examples_stay_together(tokenizer, encoder):
    corpus = pairs_of(["ab", "b ab"], ["a", "ab b a"], {"empty text": 2})
    skipped = Counter()
    (examples,) = tokenise(corpus.stream(), encoder, 50, 10, skipped)
    assert len(examples) == 2
    assert skipped == {"empty text": 2}
    for name, texts in corpus.texts.items():
        assert rows_of(examples[name]) == [tokenizer.encode(text) for text in texts]


def test_the_encoder_names_the_ids(tokenizer):
    """Two rows of ids from one text, and in its order."""

    def encode(texts):
        rows = [tokenizer.encode(text) for text in texts["text"]]
        return {"backwards": [row[::-1] for row in rows], "forwards": rows}

    corpus = Examples({"text": ["ab", "b ab"]})
    encoder = Encoder(encode, tokenizer.vocabulary_size, "both ways")
    (examples,) = tokenise(corpus.stream(), encoder, 50, 10, Counter())
    assert list(examples.rows) == ["backwards", "forwards"]
    expected = [row[::-1] for row in rows_of(examples["forwards"])]
    assert rows_of(examples["backwards"]) == expected


def test_examples_too_long_in_any_field_are_counted(encoder):
    """ "x" is unknown: a blank, a byte each, and the end token make n + 2 ids."""
    sources, targets = ["xxx", "xxxx", "x", "x"], ["xx", "x", "xxxx", "x"]
    corpus = pairs_of(sources, targets, {"empty text": 1})
    skipped = Counter()
    (examples,) = tokenise(corpus.stream(), encoder, 5, 10, skipped)
    np.testing.assert_array_equal(examples["source"].lengths, [5, 3])
    np.testing.assert_array_equal(examples["target"].lengths, [4, 3])
    assert skipped == {"empty text": 1, "longer than 5 tokens": 2}


def test_shards_hold_the_examples_in_order(tokenizer, encoder, monkeypatch):
    """3 are tokenised at a time, so a shard of at least 7 has 9, or fewer when some are skipped."""
    monkeypatch.setattr(tokens, "_CHUNK", 3)
    corpus = pairs_of(["a" * n for n in range(1, 31)], ["b"] * 30)
    skipped = Counter()
    shards = list(tokenise(corpus.stream(), encoder, 27, 7, skipped))
    expected = [tokenizer.encode(text) for text in corpus["source"]]
    kept = [row for row in expected if len(row) <= 27]
    assert [row for shard in shards for row in rows_of(shard["source"])] == kept
    assert all(7 <= len(shard) < 10 for shard in shards[:-1])
    assert sum(skipped.values()) == 30 - len(kept) > 0


def test_ids_take_two_bytes_where_two_suffice(encoder):
    (examples,) = tokenise(pairs_of(["a"], ["b"]).stream(), encoder, 9, 9, Counter())
    assert {rows.ids.dtype for rows in examples.rows.values()} == {np.dtype("uint16")}


def test_no_more_text_is_read_than_a_shard_needs(encoder, monkeypatch):
    monkeypatch.setattr(tokens, "_CHUNK", 3)
    read = []
    stream = pairs_of(["a"] * 30, ["b"] * 30).stream()
    counted = ExampleStream(
        stream.fields, lambda skipped: (read.append(p) or p for p in stream), lambda: "counted"
    )
    next(tokenise(counted, encoder, 9, 6, Counter()))
    assert len(read) == 6
