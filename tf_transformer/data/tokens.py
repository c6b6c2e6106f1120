"""Examples as token ids: rows in flat arrays, in memory or in memory-mapped files."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from tf_transformer.data.examples import ExampleStream
from tf_transformer.text.special_ids import PAD_ID
from tf_transformer.text.word_alignment import LINKS

T = TypeVar("T")

Batch = dict[str, np.ndarray]
"""The ids of a batch by name: int32 arrays (B, L), 0 = padding."""

_CHUNK = 2048  # examples that are tokenised at once, which is enough work for all cores


class IdRows:
    """Rows of token ids with different lengths.

    Attributes:
        ids: integer array (sum of lengths,) with the ids of all rows in order. It may be a
            memory-mapped file. Then, only the rows that are used are read.
        lengths: int32 array (N,), the length of each row.
    """

    def __init__(self, ids: np.ndarray, lengths: np.ndarray):
        self.ids = np.asarray(ids)  # np.memmap's own indexing is slow
        self.lengths = np.asarray(lengths, np.int32)
        self._starts = np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]], dtype: DTypeLike = np.int32) -> "IdRows":
        """Joins rows of ids."""
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        ids = np.fromiter(itertools.chain.from_iterable(rows), dtype, int(lengths.sum()))
        return cls(ids, lengths)

    def split(self) -> list[np.ndarray]:
        """The ids of each row."""
        return np.split(self.ids, np.cumsum(self.lengths)[:-1])

    @classmethod
    def concatenated(cls, parts: Sequence["IdRows"]) -> "IdRows":
        """Joins the rows of several parts, in order."""
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def positions(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positions of rows (R,) in `ids`, in order, and the ends of rows among them (R,)."""
        lengths = self.lengths[indices]
        ends = np.cumsum(lengths)
        offsets = np.repeat(self._starts[indices] - ends + lengths, lengths)
        return offsets + np.arange(len(offsets)), ends

    def taken(self, indices: np.ndarray) -> "IdRows":
        """Selects the rows at `indices`."""
        return IdRows(self.ids[self.positions(indices)[0]], self.lengths[indices])

    def padded(self, indices: np.ndarray) -> np.ndarray:
        """Selects the rows at `indices` and pads them: int32 array (B, longest)."""
        lengths = self.lengths[indices, np.newaxis]
        columns = np.arange(lengths.max())
        positions = self._starts[indices, np.newaxis] + columns
        batch = np.full(positions.shape, PAD_ID, np.int32)
        is_real = columns < lengths
        batch[is_real] = self.ids[positions[is_real]]
        return batch


@dataclass(frozen=True)
class TokenExamples:
    """Tokenised examples: by name, the ids of all. Row n of each name belongs to example n."""

    rows: Mapping[str, IdRows]

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())).lengths)

    def __getitem__(self, name: str) -> IdRows:
        return self.rows[name]

    @classmethod
    def concatenated(cls, parts: Sequence["TokenExamples"]) -> "TokenExamples":
        """Joins the examples of several parts, in order."""
        names = parts[0].rows
        return cls({name: IdRows.concatenated([part[name] for part in parts]) for name in names})

    @property
    def counted(self) -> dict[str, IdRows]:
        """The rows of tokens, whose lengths count in a batch: all but the links of words."""
        return {name: rows for name, rows in self.rows.items() if name != LINKS}

    def taken(self, indices: np.ndarray) -> "TokenExamples":
        """Selects the examples at `indices`."""
        return TokenExamples({name: rows.taken(indices) for name, rows in self.rows.items()})

    def batch(self, indices: np.ndarray) -> Batch:
        """Selects and pads the examples at `indices`: by name, int32 arrays (B, L)."""
        return {name: rows.padded(indices) for name, rows in self.rows.items()}


@dataclass(frozen=True)
class Encoder:
    """Makes ids from texts, given by field; returns lists of id rows by name."""

    encode: Callable[[Mapping[str, Sequence[str]]], Mapping[str, Sequence[Sequence[int]]]]
    vocabulary_size: int  # of the largest vocabulary; all ids are below it
    identity: str  # of the function


def tokenise(
    stream: ExampleStream,
    encoder: Encoder,
    max_length: int,
    shard_examples: int,
    skipped: Counter[str],
) -> Iterator[TokenExamples]:
    """Tokenises examples, one shard at a time. The ids of one shard are in memory.

    Examples with more than `max_length` ids in a row are skipped and counted. A shard has
    `shard_examples` examples or a few more; the last one may have fewer.
    """
    dtype = np.min_scalar_type(encoder.vocabulary_size - 1)  # 2 bytes for up to 65,536 ids
    parts: list[TokenExamples] = []
    for chunk in chunks(stream.start(skipped), min(_CHUNK, shard_examples)):
        columns = zip(*chunk, strict=True)
        encoded = encoder.encode(dict(zip(stream.fields, columns, strict=True)))
        examples = list(zip(*encoded.values(), strict=True))
        counted = [name for name in encoded if name != LINKS]
        lengths = zip(*(map(len, encoded[name]) for name in counted), strict=True)
        kept = [
            rows for rows, size in zip(examples, lengths, strict=True) if max(size) <= max_length
        ]
        if len(kept) < len(examples):
            skipped[too_long(max_length)] += len(examples) - len(kept)
        if kept:
            rows = (IdRows.from_lists(column, dtype) for column in zip(*kept, strict=True))
            parts.append(TokenExamples(dict(zip(encoded, rows, strict=True))))
        if sum(map(len, parts)) >= shard_examples:
            yield TokenExamples.concatenated(parts)
            parts = []
    if parts:
        yield TokenExamples.concatenated(parts)


def too_long(max_length: int) -> str:
    """The reason for skipping examples with more than `max_length` ids."""
    return f"longer than {max_length} tokens"


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Divides items into lists of `size` items. The last list may be shorter."""
    items = iter(items)
    while chunk := list(itertools.islice(items, size)):
        yield chunk
