"""Unigrams in Python: the op of tensorflow-text is the oracle for any version of sentencepiece."""

import itertools
import random

import pytest
import tensorflow_text as tf_text
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.data.readers.generated import generate
from tf_transformer.text.sentencepiece_file import (
    Kind,
    Piece,
    SpecialPieces,
    read_pieces,
    with_pieces,
)
from tf_transformer.text.special_ids import BLANK, EOS_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.text.unigrams import Division, Unigrams

SPECIAL = SpecialPieces("<unk>", "<s>", "</s>", "<pad>")


def tokenizer_of(seed: int, symbols: tuple[str, ...] = (), has_bytes: bool = True) -> Tokenizer:
    """A vocabulary of repeated characters with random scores, in which divisions are often equal.

    Its numbers of characters reach over the starts of words where seeds are odd.
    """
    draw = random.Random(seed)
    trained = Tokenizer.train(["0"], 300, "identity", "unigram").model
    special = read_pieces(trained)[: UNK_ID + 257 if has_bytes else UNK_ID + 1]
    texts = [BLANK, *"01,abf", f"{BLANK}1", "ab", "ba", "aba", "bab", f"{BLANK}ab"]
    texts += [c * n for c in "0af" for n in range(2, 6)] + [f"a{BLANK}b"] * (seed % 2)
    pieces = [Piece(text, -draw.uniform(2, 12)) for text in texts if text not in symbols]
    pieces += [Piece(text, 0.0, Kind.USER_DEFINED) for text in symbols]
    everything = [*special, *pieces]
    model = with_pieces(trained, everything, len(everything), SPECIAL)
    # Field 35 of the trainer, which is field 2, is byte_fallback.
    return Tokenizer(model if has_bytes else model + b"\x12\x03\x98\x02\x00")


TOKENIZERS = [
    *map(tokenizer_of, range(6)),
    tokenizer_of(0, ("00", "aab", "é")),
    tokenizer_of(1, ("ab", "abaf", f"{BLANK}0")),
    tokenizer_of(2, ("a", "aa"), has_bytes=False),
    tokenizer_of(3, has_bytes=False),
]
PARTS = st.sampled_from(["0", "00", "000", "1", ",", "a", "aa", "f", "ab", "aba", " ", "é", "x日"])
TEXTS = st.lists(PARTS, max_size=40).map("".join)


def by_op(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    """Ids without the end of the sentence."""
    return tf_text.SentencepieceTokenizer(model=tokenizer.model).tokenize(texts).to_list()


@settings(max_examples=200)
@given(st.integers(0, len(TOKENIZERS) - 1), st.lists(TEXTS, min_size=1, max_size=4))
def test_ids_are_those_of_the_op(which, texts):
    tokenizer = TOKENIZERS[which]
    texts = [text if text.strip() else "" for text in texts]
    rows = [[*row, EOS_ID] for row in by_op(tokenizer, texts)]
    assert tokenizer.encode_batch(texts) == rows
    assert list(map(tokenizer.encode, texts)) == rows


@pytest.mark.parametrize("which", range(len(TOKENIZERS)))
def test_numbers_and_repeated_letters_have_the_ids_of_the_op(which):
    """All texts of a few characters, and texts whose sums have large roundings."""
    short = ["".join(text) for n in range(1, 7) for text in itertools.product("0a b", repeat=n)]
    texts = [text for text in short if text.strip()] + [f"10,{'0' * n}" for n in range(40)]
    texts += [" ".join(texts[start::7]) for start in range(7)] + ["1" * 30_000 + "000ab 00aba"]
    rows = by_op(TOKENIZERS[which], texts)
    assert [row[:-1] for row in TOKENIZERS[which].encode_batch(texts)] == rows


@pytest.mark.parametrize("symbols", [(), ("twenty", "<ph>", "ein")])
def test_trained_pieces_divide_texts_as_the_op(symbols):
    corpus = generate(300, "en", "de", seed=1)
    lines = corpus["source"] + corpus["target"] + ["<ph> Kunststofffolie", "10,000 to 100,000"] * 9
    tokenizer = Tokenizer.train(lines, 500, segmentation="unigram", symbols=symbols)
    texts = [*lines, *(f"{a}{b} {b}{b}" for a, b in itertools.pairwise(lines))]
    assert [row[:-1] for row in tokenizer.encode_batch(texts)] == by_op(tokenizer, texts)


def test_unknown_characters_and_their_bytes():
    pieces = [Piece("<unk>", 0.0, Kind.UNKNOWN), Piece(BLANK, -1.0), Piece("a", -2.0)]
    divided = Unigrams(pieces).divide("▁日x▁a日")
    assert divided == Division([1, 0, 1, 2, 0], [BLANK, "日x", BLANK, "a", "日"])
    pieces += [Piece(f"<0x{byte:02X}>", 0.0, Kind.BYTE) for byte in range(256)]
    divided = Unigrams(pieces).divide("é")
    assert divided == Division([3 + 0xC3, 3 + 0xA9], ["<0xC3>", "<0xA9>"])
    assert Unigrams(pieces).divide("") == Division([], [])


def test_words_from_the_cache_are_those_of_the_text(monkeypatch):
    """With a cache that is full after each word."""
    monkeypatch.setattr("tf_transformer.text.unigrams._MAX_WORDS", 1)
    tokenizer = tokenizer_of(4)
    texts = ["00 aab 00 aab", "aab 00", "10,000 fff 10,000"]
    assert list(map(tokenizer.encode, texts)) == list(map(TOKENIZERS[4].encode, texts))
