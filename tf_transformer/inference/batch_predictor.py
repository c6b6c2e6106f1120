"""Texts in batches through a model: what predictors with and without a search share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Self, TypeVar

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.attention_record import (
    SPECIAL_IDS,
    AttentionMap,
    AttentionRecord,
    Tokens,
)
from tf_transformer.inference.predictor import Prediction, Progress, as_texts, no_progress
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.threads import in_parallel, parallel_batches, require_threads
from tf_transformer.text.special_ids import EOS_ID, PAD_ID
from tf_transformer.text.tokenizer import Tokenizer

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class BatchAttention(NamedTuple):
    """One kind of attention of a batch: `AttentionMap` before ids become tokens."""

    kind: str
    queries: np.ndarray  # ids (B, T), 0 = padding
    keys: np.ndarray  # ids (B, S)
    layers: Sequence[tf.Tensor]  # (B, H, T, S) each


class BatchPredictor(ABC):
    """A model and its tokenizer.

    Args:
        model: the built model.
        tokenizer: its tokenizer.
        config: the sizes of batches, and how long texts may be.

    Attributes:
        symbols: ids that are words of their own.
        own_options: further arguments of a subclass, by name.
    """

    symbols: Container[int] = SPECIAL_IDS
    own_options: Mapping[str, bool] = MappingProxyType({})

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, config: DecodeConfig):
        require_threads()
        self.model = model
        self.tokenizer = tokenizer
        self.config = config
        # A learned position table has a last row; sinusoids have none.
        self.max_source_length = config.max_source_length
        if model.config.position == "learned":
            self.max_source_length = min(self.max_source_length, model.config.max_length)

    def encode(self, text: str) -> list[int]:
        """Ids of a text, the end-of-sentence id last."""
        return self.tokenizer.encode(text)

    @own_settings()
    def with_dtype(self, dtype: str) -> Self:
        """This predictor with weights and computation in another type.

        In bfloat16 weights take half the memory, and a CPU that multiplies bfloat16 or a GPU
        takes about half the time; softmax, normalisation and scores stay float32.

        Args:
            dtype: float32 or bfloat16.

        Raises:
            InputError: for another type.
        """
        if dtype not in ("float32", "bfloat16"):
            raise InputError(f"dtype must be float32 or bfloat16, got {dtype}.")
        if self.model.compute_dtype == dtype:
            return self
        model = type(self.model).from_config(self.model.get_config() | {"dtype": dtype})
        model.build()
        for weight, value in zip(model.weights, self.model.weights, strict=True):
            weight.assign(tf.cast(value.value, weight.dtype))
        return self.like(model, self.config)

    def like(self, model: keras.Model, config: DecodeConfig) -> Self:
        """A predictor of this kind, with another model of the same vocabulary or another search."""
        return type(self)(model, self.tokenizer, config, **self.own_options)

    def __call__(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[Prediction]:
        """The best prediction for each of `texts`, in their order.

        Texts of similar length are processed together; the order does not matter.

        Args:
            texts: any strings; an empty or blank one gives an empty prediction.
            prefixes: for each text the start of its prediction; "" for none. After a space a new
                word follows.
            progress: called after each batch.
        """
        return [n_best[0] for n_best in self.n_best(texts, prefixes, progress)]

    @abstractmethod
    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Prediction]]:
        """All predictions for each text, best first, at least one."""

    @own_settings()
    def attention(self, texts: Sequence[str], predictions: Sequence[str]) -> list[AttentionRecord]:
        """The attention weights with which the model computes each of `predictions` for its text.

        Args:
            texts: the inputs.
            predictions: one per text.

        Self-attention with `model.attention` linear has no weights: such maps are left out.
        """
        texts = as_texts(texts)
        predictions = as_texts(predictions, "predictions", texts)
        maps: list[list[AttentionMap]] = [[] for _ in texts]
        for indices, batch in self.attention_batches(texts, predictions):
            for kind, queries, keys, layers in batch:
                if not layers:
                    continue  # linear attention has no weights
                weights = np.stack([np.asarray(each, np.float32) for each in layers], 1)
                for i, *rows, matrix in zip(indices, queries, keys, weights, strict=True):
                    query, key = map(self.tokens, rows)
                    matrix = matrix[:, :, : len(query.pieces), : len(key.pieces)]
                    maps[i].append(AttentionMap(kind, query, key, matrix))
        return [
            AttentionRecord(text, prediction, of_text)
            for text, prediction, of_text in zip(texts, predictions, maps, strict=True)
        ]

    @abstractmethod
    def attention_batches(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> Iterator[tuple[list[int], list[BatchAttention]]]:
        """Batches of texts: their indices, and the attention of each kind."""

    def tokens(self, ids: Iterable[int]) -> Tokens:
        """The pieces and words of ids."""
        return Tokens.of((i for i in ids if i != PAD_ID), self.tokenizer, self.symbols)

    def _cut(self, rows: Iterable[list[int]]) -> tuple[list[list[int]], list[bool]]:
        """Rows of at most `max_source_length` ids, the end token last, and whether each was cut."""
        rows, longest = list(rows), self.max_source_length
        cut = [len(ids) > longest for ids in rows]
        return [ids if len(ids) <= longest else [*ids[: longest - 1], EOS_ID] for ids in rows], cut

    def _in_parallel(
        self, run: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[tuple[Batch, Result]]:
        """Each batch with its result, in order; several are computed at a time."""
        batches = list(batches)
        count = min(parallel_batches(self.config.parallel_batches), max(1, len(batches)))
        results = in_parallel(run, batches, count)
        return zip(batches, results, strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of rows that have a length, longest first.

        No row is shorter than half the longest of its batch.
        """
        batch: list[int] = []
        for i in sorted(
            filter(lengths.__getitem__, range(len(lengths))), key=lambda i: -lengths[i]
        ):
            longest = lengths[batch[0]] if batch else 0
            full = (
                len(batch) == self.config.batch_size
                or (len(batch) + 1) * longest > self.config.batch_tokens
            )
            if batch and (full or 2 * lengths[i] < longest):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch


def pad(rows: list[list[int]]) -> np.ndarray:
    """Rows of ids as one int32 array (B, L), padded at the end."""
    array = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
    for target, row in zip(array, rows, strict=True):
        target[: len(row)] = row
    return array
