"""Words of ids: after blanks, and where letters and other signs meet."""

import itertools

import pytest

from tf_transformer.inference.masked_predictor import WordNumbers
from tf_transformer.text.tokenizer import Tokenizer

WORDS = {
    "a house": ["a", "house"],
    "a  house.": ["a", "house", "."],
    "(Haus), 21.": ["(", "Haus", "),", "21", "."],
    "naïve 日本語": ["naïve", "日本語"],  # partly in bytes
    "<unk> </s>": ["<", "unk", ">", "</", "s", ">"],
    "": [],
}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a house, (ein Haus), 21 naive unk s"], vocabulary_size=310)


@pytest.mark.parametrize(("text", "expected"), WORDS.items(), ids=range(len(WORDS)))
def test_words(tokenizer, text, expected):
    ids = tokenizer.encode(text)
    *numbers, end = WordNumbers(tokenizer)(ids)
    assert end == 0
    groups = itertools.groupby(zip(numbers, ids, strict=False), key=lambda pair: pair[0])
    found = [(number, tokenizer.decode([i for _, i in pairs])) for number, pairs in groups]
    assert found == list(enumerate(expected, 1))
