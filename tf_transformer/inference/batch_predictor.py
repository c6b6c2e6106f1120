"""Predictions in batches: the base class of predictors with and without a search."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.attention_record import (
    SPECIAL_IDS,
    AttentionMap,
    AttentionRecord,
    Tokens,
)
from tf_transformer.inference.dtypes import with_dtype
from tf_transformer.inference.inputs import Input, columns_of
from tf_transformer.inference.predictor import (
    PairScore,
    Prediction,
    Progress,
    as_texts,
    load_predictor,
    no_progress,
)
from tf_transformer.layers.stack import Stack
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.threads import in_parallel, parallel_batches, require_threads
from tf_transformer.models.ensemble import members_of
from tf_transformer.run.run import Run
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
    """One kind of attention for a batch: an `AttentionMap` with ids in place of tokens."""

    kind: str
    queries: np.ndarray  # ids (B, T), 0 = padding
    keys: np.ndarray  # ids (B, S)
    layers: Sequence[tf.Tensor]  # (B, H, T, S) each


class BatchPredictor(ABC):
    """A model and its codec.

    A subclass has a `TextGraph`, which encodes and decodes, and divides rows into batches.

    Args:
        model: the built model.
        codec: the codec of the model, with its tokenizers.
        config: options for the sizes of batches and the length of texts.

    Attributes:
        symbols: ids that each form a word.
        optional_inputs: texts that may be given beside each text; see `Input`.
        own_options: further arguments of a subclass, by name.
    """

    symbols: Container[int] = SPECIAL_IDS
    optional_inputs: Sequence[Input] = ()
    own_options: Mapping[str, bool] = MappingProxyType({})

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        require_threads()
        self.model = model
        self.codec = codec
        self.config = config
        # The table of learned positions is finite. Sinusoids have no limit.
        tables = [x.max_length for x in self.model_configs if x.position == "learned"]
        self.max_source_length = min([config.max_source_length, *tables])

    @classmethod
    def from_run(
        cls,
        run_dir: str | os.PathLike,
        dtype: str = "float32",
        task_options: Mapping[str, Any] | None = None,
        **decode_options: Any,
    ) -> Self:
        """Loads a run: its codec, and the weights that `DecodeConfig.average` selects.

        Args:
            run_dir: folder of the run.
            dtype: float32, bfloat16 or int8; see `with_dtype`.
            task_options: new values for options of the run's task, by name; None keeps a value.
            **decode_options: new values for fields of `DecodeConfig`; None keeps a value.

        Raises:
            InputError: for a folder without a run, a run whose task has another predictor, or an
                option out of range.
        """
        predictor = load_predictor(Run.load(run_dir, task_options, **decode_options), dtype)
        if not isinstance(predictor, cls):
            raise InputError(
                f"expected a run that predicts with a {cls.__name__}, but {run_dir} predicts with "
                f"a {type(predictor).__name__}. Use {type(predictor).__name__}.from_run."
            )
        return predictor

    @property
    def model_configs(self) -> list[ModelConfig]:
        """The configuration of the model, or of each model of an ensemble."""
        return [model.config for model in members_of(self.model)]

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of a model with one vocabulary.

        Raises:
            InputError: for a model with two vocabularies; use `codec`.
        """
        return self.codec[""]

    @own_settings()
    def with_dtype(self, dtype: str) -> Self:
        """This predictor with another dtype of weights and computation.

        bfloat16 weights take half the memory. GPUs, and CPUs with bfloat16 products, need about
        half the time. In int8, large matrices take a quarter of the memory, and their products need
        less than half the time on CPUs. Softmax, normalization and scores stay float32.

        Args:
            dtype: float32, bfloat16 or int8.

        Raises:
            InputError: for another dtype, and for int8 where TensorFlow has no such products.
        """
        model = with_dtype(self.model, dtype)
        return self if model is self.model else self.like(model, self.config)

    def like(self, model: keras.Model, config: DecodeConfig) -> Self:
        """A predictor of this class with another model or other options of the search.

        Args:
            model: a built model with the same vocabulary.
            config: options of the search.
        """
        return type(self)(model, self.codec, config, **self.own_options)

    def __call__(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
        **inputs: Sequence[str] | None,
    ) -> list[Prediction]:
        """The best prediction for each text, in the order of the texts.

        Texts of similar length are processed together, so texts may come in any order.

        Args:
            texts: any strings. An empty text or only white space gives an empty prediction.
            prefixes: for each text, the beginning of its prediction, or "". A prefix that ends in
                a space is followed by a new word.
            progress: function that is called after each batch.
            **inputs: for each text, another input of `optional_inputs`, or "": `target_tags` are
                tags like >>por<< for texts without a tag.

        Raises:
            InputError: for an input that this predictor does not take, or a wrong value.
        """
        return [n_best[0] for n_best in self.n_best(texts, prefixes, progress, **inputs)]

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
        **inputs: Sequence[str] | None,
    ) -> list[list[Prediction]]:
        """Up to `config.num_hypotheses` predictions for each text, best first; at least one.

        With `config.distinct`, the predictions for a text are different texts.

        Args:
            texts: as in a call.
            prefixes: as in a call.
            progress: function that is called after each batch.
            **inputs: as in a call.

        Raises:
            InputError: as in a call.
        """
        texts = as_texts(texts)
        given = columns_of(self.optional_inputs, texts, {"prefixes": prefixes, **inputs})
        return self._n_best(texts, given, progress)

    @abstractmethod
    def _n_best(
        self, texts: list[str], given: Mapping[str, list[str]], progress: Progress
    ) -> list[list[Prediction]]:
        """`n_best` of a list, with all of `optional_inputs` by name, or without any."""

    def joined(self, texts: Sequence[str], **inputs: Sequence[str] | None) -> list[str]:
        """The texts with the inputs that belong to the source, such as `target_tags`.

        Methods without these inputs, such as `score`, take the result.

        Args:
            texts: any strings.
            **inputs: as in a call.

        Raises:
            InputError: as in a call.
        """
        texts = as_texts(texts)
        columns_of(self.optional_inputs, texts, inputs)
        return texts

    def score(
        self, texts: Sequence[str], predictions: Sequence[str], progress: Progress = no_progress
    ) -> list[PairScore]:
        """The model's score of a given prediction for each text.

        For a prediction of a search without constraints, this equals the score of the search if
        the tokenizer splits the prediction into the same pieces. A pair of empty texts has score 0.

        Args:
            texts: the inputs.
            predictions: one prediction per text.
            progress: function that is called after each batch.

        Raises:
            InputError: for a model that cannot score given predictions.
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
        """The model's attention weights when it computes a given prediction for each text.

        Self-attention with `model.attention` linear has no weights, so its maps are left out.

        Args:
            texts: the inputs.
            predictions: one prediction per text.
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
        """Batches of texts: the indices of the texts, and the attention of each kind."""

    def tokens(self, ids: Iterable[int], field: str) -> Tokens:
        """The pieces and words of ids.

        Args:
            ids: a row of ids; padding is ignored.
            field: name of the text in the codec, like source.
        """
        return Tokens.of((i for i in ids if i != PAD_ID), self.codec[field], self.symbols)

    def _in_parallel(
        self, run: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[tuple[Batch, Result]]:
        """Each batch with its result, in order; computes several batches in parallel."""
        batches = list(batches)
        count = min(parallel_batches(self.config.parallel_batches), max(1, len(batches)))
        results = in_parallel(run, batches, count)
        return zip(batches, results, strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Batches of the indices of rows with a length above 0, longest first.

        Each row is at least half as long as the longest row of its batch.
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
    """`StackOutput.attention` as (B, H, T, T) per layer; linear attention has no weights."""
    pairs = zip(stack.layers, attention, strict=True)
    return [layer.self_attention.by_position(weights) for layer, weights in pairs if len(weights)]


def pad(rows: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    """Rows of ids as an int32 array (B, L), padded at the end."""
    array = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
    for target, row in zip(array, rows, strict=True):
        target[: len(row)] = row
    return array
