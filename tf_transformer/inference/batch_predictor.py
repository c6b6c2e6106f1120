"""Texts in batches through a model: what predictors with and without a search share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self, TypeVar

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
from tf_transformer.inference.predictor import (
    PairScore,
    Prediction,
    Progress,
    as_texts,
    no_progress,
)
from tf_transformer.layers.stack import Stack
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.threads import in_parallel, parallel_batches, require_threads
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import PAD_ID
from tf_transformer.text.tokenizer import Tokenizer

# The fields of queries and keys of each kind of attention.
SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}
Batch = TypeVar("Batch")
Result = TypeVar("Result")


class BatchAttention(NamedTuple):
    """One kind of attention of a batch: `AttentionMap` before ids become tokens."""

    kind: str
    queries: np.ndarray  # ids (B, T), 0 = padding
    keys: np.ndarray  # ids (B, S)
    layers: Sequence[tf.Tensor]  # (B, H, T, S) each


class BatchPredictor(ABC):
    """A model and its codec.

    A subclass has a `TextGraph`, which encodes and decodes, and plans batches of its rows.

    Args:
        model: the built model.
        codec: its tokenizers.
        config: the sizes of batches, and how long texts may be.

    Attributes:
        symbols: ids that are words of their own.
        no_prefixes: why a prediction has no given start; "": it may have one.
        own_options: further arguments of a subclass, by name.
    """

    symbols: Container[int] = SPECIAL_IDS
    no_prefixes: ClassVar[str] = ""
    own_options: Mapping[str, bool] = MappingProxyType({})

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        require_threads()
        self.model = model
        self.codec = codec
        self.config = config
        # A learned position table has a last row; sinusoids have none.
        self.max_source_length = config.max_source_length
        if model.config.position == "learned":
            self.max_source_length = min(self.max_source_length, model.config.max_length)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of all texts, if the model has one vocabulary.

        Raises:
            InputError: when it has two; see `codec`.
        """
        return self.codec[""]

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
        return type(self)(model, self.codec, config, **self.own_options)

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

        Raises:
            InputError: for prefixes of predictions that have none.
        """
        return [n_best[0] for n_best in self.n_best(texts, prefixes, progress)]

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Prediction]]:
        """As a call, but all `config.num_hypotheses` predictions for each text, best first.

        Their texts differ if `config.distinct` is set. At least one, and fewer than
        `config.num_hypotheses` when there are fewer.

        Raises:
            InputError: for prefixes of predictions that have none.
        """
        texts = as_texts(texts)
        if prefixes is not None:
            if self.no_prefixes:
                raise InputError(self.no_prefixes)
            prefixes = as_texts(prefixes, "prefixes", texts)
        return self._n_best(texts, prefixes, progress)

    @abstractmethod
    def _n_best(
        self, texts: list[str], prefixes: list[str] | None, progress: Progress
    ) -> list[list[Prediction]]:
        """`n_best` of a list."""

    def score(
        self, texts: Sequence[str], predictions: Sequence[str], progress: Progress = no_progress
    ) -> list[PairScore]:
        """The model's score of each of `predictions` for its text.

        For a prediction that a search without constraints found, this is the search's own
        score, if the tokenizer splits the text as the search did. A pair of two empty or blank
        texts has the score 0.

        Args:
            texts: the inputs.
            predictions: one per text.
            progress: called after each batch.

        Raises:
            InputError: when the model has no score of a given prediction.
        """
        texts = as_texts(texts)
        return self._scores(texts, as_texts(predictions, "predictions", texts), progress)

    @abstractmethod
    def _scores(
        self, texts: list[str], predictions: list[str], progress: Progress
    ) -> list[PairScore]:
        """`score` of lists."""

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
                weights = np.stack([np.asarray(layer, np.float32) for layer in layers], 1)
                for i, *rows, matrix in zip(indices, queries, keys, weights, strict=True):
                    query, key = map(self.tokens, rows, SIDES[kind])
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

    def tokens(self, ids: Iterable[int], field: str) -> Tokens:
        """The pieces and words of ids of a field."""
        return Tokens.of((i for i in ids if i != PAD_ID), self.codec[field], self.symbols)

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


def by_position(stack: Stack, attention: Sequence) -> list[tf.Tensor]:
    """`StackOutput.attention` as (B, H, T, T) for each layer; none with linear attention."""
    pairs = zip(stack.layers, attention, strict=True)
    return [layer.self_attention.by_position(weights) for layer, weights in pairs if len(weights)]


def pad(rows: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    """Rows of ids as one int32 array (B, L), padded at the end."""
    array = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
    for target, row in zip(array, rows, strict=True):
        target[: len(row)] = row
    return array
