"""From pairs of strings to batches of ids: token budget, length buckets, reproducible order."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tf_transformer.data.corpus import Corpus
from tf_transformer.errors import InputError
from tf_transformer.layers import PAD_ID
from tf_transformer.tokenizer import Tokenizer

IdBatch = tuple[np.ndarray, np.ndarray]  # source (B, S) and target (B, T), int32, 0 = padding


class IdRows:
    """Rows of token ids of unequal length, in two flat arrays.

    Args:
        rows: the rows.

    Attributes:
        lengths: int64 array (N,), the length of each row.
    """

    def __init__(self, rows: Sequence[Sequence[int]]):
        self.lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._ids = np.fromiter((i for row in rows for i in row), np.int32, self.lengths.sum())

    def padded(self, indices: np.ndarray, num_rows: int) -> np.ndarray:
        """The rows at `indices` as an int32 array (num_rows, longest), padded with `PAD_ID`."""
        lengths = self.lengths[indices]
        batch = np.full((num_rows, lengths.max()), PAD_ID, np.int32)
        for row, start, length in zip(batch, self._starts[indices], lengths, strict=False):
            row[:length] = self._ids[start : start + length]
        return batch


@dataclass(frozen=True)
class TokenPairs:
    """A tokenised corpus; both sides of every pair end with the end-of-sentence id."""

    sources: IdRows
    targets: IdRows
    skipped: Counter[str]

    @classmethod
    def from_corpus(cls, corpus: Corpus, tokenizer: Tokenizer, max_length: int) -> "TokenPairs":
        """Tokenises a corpus and leaves out, counted, pairs over `max_length` tokens.

        Raises:
            InputError: when every pair is too long.
        """
        encoded = zip(
            tokenizer.encode_batch(corpus.sources),
            tokenizer.encode_batch(corpus.targets),
            strict=True,
        )
        kept = [pair for pair in encoded if max(map(len, pair)) <= max_length]
        if not kept:
            raise InputError(
                f"all {len(corpus)} pairs are longer than data.max_length={max_length} tokens; "
                "raise it, or split the text into sentences."
            )
        skipped = Counter(corpus.skipped)
        if len(kept) < len(corpus):
            skipped[f"longer than {max_length} tokens"] = len(corpus) - len(kept)
        sources, targets = zip(*kept, strict=True)
        return cls(IdRows(sources), IdRows(targets), skipped)

    def __len__(self) -> int:
        return len(self.sources.lengths)


class BatchPlan:
    """Which pairs form which batch, in which order: a function of (seed, epoch).

    Pairs are ordered by their lengths rounded up to `bucket_width`, targets first; pairs with
    the same rounded lengths are shuffled among themselves. That order is cut where the next
    pair would overrun the token budget (paper section 5.1), and the batches are shuffled.
    Because the sequence of rounded lengths is the same in every epoch, so are the cuts: every
    epoch has the same number of batches with the same numbers of rows, and any position can be
    sought.

    Args:
        pairs: the tokenised corpus.
        batch_tokens: room for source tokens, and for target tokens, padding included.
        bucket_width: lengths are rounded up to multiples of this to be compared.
        seed: of all orders.
    """

    def __init__(self, pairs: TokenPairs, batch_tokens: int, bucket_width: int, seed: int):
        self.pairs = pairs
        self.seed = seed
        source, target = (
            -(-rows.lengths // bucket_width) * bucket_width
            for rows in (pairs.sources, pairs.targets)
        )
        # Source lengths rise in one target bucket and fall in the next, so that a batch that
        # reaches into the next bucket still holds sources of one length.
        falling = (target // bucket_width) % 2 == 1
        self._sort_keys = (np.where(falling, -source, source), target)
        order = np.lexsort(self._sort_keys)
        self._cuts = _cuts(source[order], target[order], batch_tokens)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._cuts) + 1

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """The batches of one pass over the corpus, as arrays of pair numbers."""
        rng = np.random.default_rng((self.seed, epoch))
        shuffled = rng.permutation(len(self.pairs))
        order = shuffled[np.lexsort([key[shuffled] for key in self._sort_keys])]  # stable
        batches = np.split(order, self._cuts)
        return [batches[i] for i in rng.permutation(len(batches))]

    def batches(self, start: int = 0, row_multiple: int = 1) -> Iterator[IdBatch]:
        """Endless batches from batch number `start` of the whole training on.

        Args:
            start: batches to pass over, counted from the first of epoch 0.
            row_multiple: rows are filled up with padding to a multiple of this, so that
                replicas get equal shares; they may overrun the token budget by that much.
        """
        epoch, first = divmod(start, len(self))
        while True:
            for indices in self.epoch(epoch)[first:]:
                yield self._batch(indices, row_multiple)
            epoch, first = epoch + 1, 0

    def one_pass(self, row_multiple: int = 1) -> Iterator[IdBatch]:
        """Every pair once."""
        for indices in self.epoch(0):
            yield self._batch(indices, row_multiple)

    def _batch(self, indices: np.ndarray, row_multiple: int) -> IdBatch:
        num_rows = -(-len(indices) // row_multiple) * row_multiple
        return (
            self.pairs.sources.padded(indices, num_rows),
            self.pairs.targets.padded(indices, num_rows),
        )

    def padding_share(self) -> float:
        """The share of padding among all ids of an epoch's batches, 0 to 1."""
        real = self.pairs.sources.lengths.sum() + self.pairs.targets.lengths.sum()
        room = sum(
            len(batch) * (rows.lengths[batch].max())
            for batch in self.epoch(0)
            for rows in (self.pairs.sources, self.pairs.targets)
        )
        return 1.0 - float(real) / float(room)


def _cuts(source: np.ndarray, target: np.ndarray, batch_tokens: int) -> np.ndarray:
    """Where batches end, for pairs of these lengths in this order."""
    cuts, start, longest = [], 0, 0
    for end, length in enumerate(np.maximum(source, target).tolist()):
        longest = max(longest, length)
        if end > start and longest * (end - start + 1) > batch_tokens:
            cuts.append(end)
            start, longest = end, length
    return np.array(cuts, np.int64)


def as_dataset(batches) -> tf.data.Dataset:
    """Wraps a function that starts an iterator of `IdBatch` as a prefetching tf.data.Dataset."""
    spec = tf.TensorSpec((None, None), tf.int32)
    dataset = tf.data.Dataset.from_generator(batches, output_signature=(spec, spec))
    return dataset.prefetch(8)
