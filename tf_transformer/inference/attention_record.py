"""Attention weights with the tokens of both axes, by pieces, by words and as JSON."""

import json
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.text.special_ids import BLANK, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer

SPECIAL_IDS = range(UNK_ID + 1)


class Tokens(NamedTuple):
    """The pieces of a text, and the words that they form."""

    pieces: list[str]
    words: list[str]
    word_of: list[int]  # the index of the word of each piece

    @classmethod
    def joined(cls, parts: Iterable["Tokens"]) -> "Tokens":
        """The tokens of the parts of a text, with the end token of the last part alone."""
        result = cls([], [], [])
        for part in parts:
            place = max(0, len(result.words) - 1)  # without the end token of the part before
            result = cls(
                result.pieces[:-1] + part.pieces,
                result.words[:-1] + part.words,
                result.word_of[:-1] + [place + word for word in part.word_of],
            )
        return result

    @classmethod
    def of(
        cls, ids: Iterable[int], tokenizer: Tokenizer, symbols: Container[int] = SPECIAL_IDS
    ) -> "Tokens":
        """The tokens of a row of ids.

        Spaces separate words. In a text with single spaces, word n is `text.split(" ")[n]`. Each of
        `symbols`, such as the end-of-sentence id, forms a word.

        Example:
            >>> tokenizer = Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300)
            >>> Tokens.of(tokenizer.encode("a house"), tokenizer).words
            ['a', 'house', '</s>']
        """
        ids = [int(token) for token in ids]
        pieces = [tokenizer.piece(token) for token in ids]
        groups: list[list[int]] = []
        word_of = []
        for place, (token, piece) in enumerate(zip(ids, pieces, strict=True)):
            is_symbol, before = token in symbols, pieces[place - 1]
            starts = piece.startswith(BLANK) and before != BLANK
            if not place or is_symbol or starts or ids[place - 1] in symbols:
                groups.append([])
            groups[-1].append(token)
            word_of.append(len(groups) - 1)
        words = [
            tokenizer.piece(group[0])
            if group[0] in symbols
            else tokenizer.decode(group).strip(" ") or BLANK
            for group in groups
        ]
        return cls(pieces, words, word_of)


def join_pieces(weights: np.ndarray, queries: Tokens, keys: Tokens) -> np.ndarray:
    """Attention weights between words, from the weights between pieces.

    Weights are averaged over the pieces of a query word and added over the pieces of a key word.
    Each row sums to 1. A word without pieces has weights 0. The axes (..., T, S) become (..., query
    words, key words).
    """
    rows = np.eye(len(queries.words))[:, queries.word_of]  # (words, T)
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1)
    return rows @ weights @ np.eye(len(keys.words))[keys.word_of]


class AttentionMap(NamedTuple):
    """The weights of all layers and heads of one kind of attention."""

    kind: str  # encoder (self-attention), decoder (self-attention) or cross
    queries: Tokens  # T pieces; in a decoder, the tokens that it predicts
    keys: Tokens  # S pieces; in a decoder's self-attention, the tokens that it reads, start first
    weights: np.ndarray  # float (layers, H, T, S), rows sum to 1

    def by_words(self) -> np.ndarray:
        """The weights between words, (layers, H, query words, key words); see `join_pieces`."""
        return join_pieces(self.weights, self.queries, self.keys)


class AttentionRecord(NamedTuple):
    """A text, an output for it, and the model's attention when it computes the output."""

    text: str
    output: str
    maps: list[AttentionMap]

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "AttentionRecord":
        """Reads a record from the result of `to_json`."""
        maps = [
            AttentionMap(
                stored["kind"],
                Tokens(**stored["queries"]),
                Tokens(**stored["keys"]),
                np.array(stored["weights"], np.float32),
            )
            for stored in value["attention"]
        ]
        return cls(value["text"], value["output"], maps)

    def to_json(self, digits: int = 6) -> dict[str, Any]:
        """The record as dicts and lists, with weights rounded to `digits` decimals."""
        maps = [
            {
                "kind": kind,
                "queries": queries._asdict(),
                "keys": keys._asdict(),
                "weights": np.round(weights.astype(np.float64), digits).tolist(),
            }
            for kind, queries, keys, weights in self.maps
        ]
        return {"text": self.text, "output": self.output, "attention": maps}


def write_json(records: Sequence[AttentionRecord]) -> str:
    """The records as the text of a JSON file."""
    return json.dumps([record.to_json() for record in records], ensure_ascii=False) + "\n"


def read_json(text: str) -> list[AttentionRecord]:
    """Reads records from the text of a file by `write_json`."""
    return [AttentionRecord.from_json(value) for value in json.loads(text)]
