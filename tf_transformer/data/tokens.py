"""Pairs as token ids: rows in flat arrays, in memory or mapped from a file."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.data.corpus import PairStream
from tf_transformer.special_ids import PAD_ID
from tf_transformer.tokenizer import Tokenizer

_CHUNK = 2048  # pairs tokenised at once: enough for all cores, and soon done


class IdRows:
    """Rows of token ids of unequal length.

    Args:
        ids: array (sum of lengths,) of all rows one after another, of any integer type; it may
            be mapped from a file, and only rows that are asked for are read then.
        lengths: array (N,), the length of each row.

    Attributes:
        ids: as given.
        lengths: int32 array (N,).
    """

    def __init__(self, ids: np.ndarray, lengths: np.ndarray):
        self.ids = np.asarray(ids)  # np.memmap's own indexing is slow
        self.lengths = np.asarray(lengths, np.int32)
        self._starts = np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]], dtype=np.int32) -> "IdRows":
        """Rows given as lists.

        Example:
            >>> IdRows.from_lists([[5, 6], [7]]).ids
            array([5, 6, 7], dtype=int32)
        """
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        ids = np.fromiter(itertools.chain.from_iterable(rows), dtype, int(lengths.sum()))
        return cls(ids, lengths)

    @classmethod
    def joined(cls, parts: Sequence["IdRows"]) -> "IdRows":
        """The rows of all parts, one part after another."""
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def padded(self, indices: np.ndarray) -> np.ndarray:
        """The rows at `indices` as an int32 array (B, longest), padded with `PAD_ID`."""
        lengths = self.lengths[indices, np.newaxis]
        columns = np.arange(lengths.max())
        places = self._starts[indices, np.newaxis] + columns
        batch = np.full(places.shape, PAD_ID, np.int32)
        is_real = columns < lengths
        batch[is_real] = self.ids[places[is_real]]
        return batch


class TokenPairs(NamedTuple):
    """Tokenised pairs; both sides of every pair end with the end-of-sentence id."""

    sources: IdRows
    targets: IdRows

    @property
    def num_pairs(self) -> int:
        """Number of pairs."""
        return len(self.sources.lengths)


def tokenise(
    text: PairStream, tokenizer: Tokenizer, max_length: int, shard_pairs: int, skipped: Counter[str]
) -> Iterator[TokenPairs]:
    """Tokenises a text shard by shard, with one shard of ids in memory.

    Args:
        text: the pairs.
        tokenizer: makes them ids.
        max_length: pairs with more tokens on a side are left out.
        shard_pairs: pairs in a shard, but fewer in the last one. The others may have a few more.
        skipped: counts what is left out, by reason.

    Yields:
        Shards; all but the last hold `shard_pairs` pairs or a few more.
    """
    parts: list[TokenPairs] = []
    for part in _tokenised_chunks(text, tokenizer, max_length, min(_CHUNK, shard_pairs), skipped):
        parts.append(part)
        if sum(part.num_pairs for part in parts) >= shard_pairs:
            yield _joined(parts)
            parts = []
    if parts:
        yield _joined(parts)


def too_long(max_length: int) -> str:
    """The reason by which pairs over the limit are counted."""
    return f"longer than {max_length} tokens"


def _joined(parts: Sequence[TokenPairs]) -> TokenPairs:
    sources, targets = zip(*parts, strict=True)
    return TokenPairs(IdRows.joined(sources), IdRows.joined(targets))


def _tokenised_chunks(
    text: PairStream, tokenizer: Tokenizer, max_length: int, size: int, skipped: Counter[str]
) -> Iterator[TokenPairs]:
    """The pairs of at most `max_length` tokens, `size` pairs of the text at a time."""
    dtype = np.min_scalar_type(tokenizer.vocabulary_size - 1)  # 2 bytes an id up to 65,536
    for chunk in _chunks(text.start(skipped), size):
        sides = [tokenizer.encode_batch(side) for side in zip(*chunk, strict=True)]
        kept = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) <= max_length]
        if len(kept) < len(chunk):
            skipped[too_long(max_length)] += len(chunk) - len(kept)
        if kept:
            sources, targets = zip(*kept, strict=True)
            yield TokenPairs(IdRows.from_lists(sources, dtype), IdRows.from_lists(targets, dtype))


def _chunks(items: Iterable, size: int) -> Iterator[list]:
    items = iter(items)
    while chunk := list(itertools.islice(items, size)):
        yield chunk
