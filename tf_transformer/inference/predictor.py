"""Predicted texts, and the base class of predictors with and without a search."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.decoding import NEG_INF
from tf_transformer.errors import InputError
from tf_transformer.inference import attention_record
from tf_transformer.inference.dtypes import with_dtype
from tf_transformer.inference.inputs import Input, as_texts, columns_of
from tf_transformer.inference.notices import Notice, in_order
from tf_transformer.inference.text_graph import TextGraph, write_saved_model
from tf_transformer.layers.stack import Stack
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.threads import in_parallel, parallel_batches, require_threads
from tf_transformer.models.ensemble import members_of
from tf_transformer.registry import TASKS
from tf_transformer.run.run import Run, direction_of
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import PAD_ID
from tf_transformer.text.tokenizer import Tokenizer

# The fields of queries and keys of each kind of attention.
SIDES = {"encoder": ("source",) * 2, "decoder": ("target",) * 2, "cross": ("target", "source")}
Batch = TypeVar("Batch")
Result = TypeVar("Result")
Progress = Callable[[int, int], object]
"""A function of two numbers: inputs done since the last call, and tokens predicted for them."""


def no_progress(inputs: int, tokens: int) -> None:
    """Ignores its arguments; the default of `progress`."""


class Prediction(NamedTuple):
    """A predicted text and its score, the log-probability divided by the length penalty.

    Example:
        >>> prediction = Prediction("eins", -0.5, (Notice.LENGTH_LIMIT,))
        >>> prediction.text, prediction.truncated
        ('eins', True)
    """

    text: str
    score: float
    notices: tuple[Notice, ...] = ()  # what it may have lost, in the order of `Notice`
    parts: int = 1  # that were predicted one by one, with `config.split`
    # For each word of `text.split()`, with `config.word_probabilities`; else ().
    word_probabilities: tuple[float, ...] = ()
    unseen_words: tuple[str, ...] = ()  # of the input, in lower case, if the run has `seen_words`

    @property
    def cut(self) -> bool:
        """Whether the input was longer than `max_source_length`."""
        return Notice.CUT in self.notices

    @property
    def at_limit(self) -> bool:
        """Whether the best prediction for the input reached its length limit."""
        return Notice.LENGTH_LIMIT in self.notices

    @property
    def truncated(self) -> bool:
        """Whether the input was cut, or its best prediction has no end token."""
        return self.cut or self.at_limit


class PairScore(NamedTuple):
    """The model's score of a given text."""

    score: float  # log-probability divided by the length penalty
    log_probability: float  # sum over the tokens of the text, nats
    cut: bool = False  # whether input or text was longer than `max_source_length`


class SignatureCase(NamedTuple):
    """Inputs for a signature of a SavedModel, and a predictor's outputs for them.

    Inputs and outputs are lists by name, with one item per text. An item of an output may be a
    list.
    """

    inputs: dict[str, list[str]]
    outputs: dict[str, list]


class BatchAttention(NamedTuple):
    """One kind of attention for a batch: an `AttentionMap` with ids in place of tokens."""

    kind: str
    queries: np.ndarray  # ids (B, T), 0 = padding
    keys: np.ndarray  # ids (B, S)
    layers: Sequence[tf.Tensor]  # (B, H, T, S) each


class Call(NamedTuple):
    """The arguments of a call of a predictor, checked."""

    texts: list[str]
    progress: Progress = no_progress
    given: Mapping[str, list[str]] = {}  # all inputs by `Input.name`, or none
    predictions: Sequence[str] = ()  # a given prediction for each text, to score or to look at


NBest = list[list[Prediction]]
"""The predictions for each text, best first; at least one."""
Attentions = Iterator[tuple[list[int], list[BatchAttention]]]
"""Batches of texts: the indices of the texts, and the attention of each kind."""


class Predictor(ABC):
    """A model and its codec, from texts to predictions. `Translator` is a predictor.

    A subclass has a `TextGraph`, which encodes and decodes, and divides rows into batches.

    Args:
        model: the built model.
        codec: the codec of the model, with its tokenizers.
        config: options of the search, of the sizes of batches and of the length of texts.

    Attributes:
        max_source_length: longest input in tokens; longer inputs are cut.
        symbols: ids that each form a word.
        optional_inputs: texts that may be given beside each text; see `Input`.
        own_options: further arguments of a subclass, by name.
        translates: whether predictions say the same as their texts. Only then may predictions keep
            spans, texts be divided into sentences, and words have probabilities.
    """

    translates: ClassVar[bool] = False
    symbols: Container[int] = attention_record.SPECIAL_IDS
    optional_inputs: Sequence[Input] = ()
    own_options: Mapping[str, bool] = MappingProxyType({})

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        require_threads()
        for name in ("split", "keep", "word_probabilities", "second_search"):
            value, off = getattr(config, name), getattr(DecodeConfig(), name)
            if value != off and not self.translates:
                raise InputError(
                    f"decode.{name} is for translators, got {value}: this run predicts with a "
                    f"{type(self).__name__}. Give --{name} {[] if off == () else str(off).lower()}."
                )
        self.model = model
        self.codec = codec
        self.config = config
        # The table of learned positions is finite. Sinusoids have no limit.
        tables = [x.max_length for x in self.model_configs if x.position == "learned"]
        self.max_source_length = min([config.max_source_length, *tables])
        self._graph = self.graph(jit_compile=False)

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
        """The tokenizer of a model with one vocabulary; else an `InputError`, and use `codec`."""
        return self.codec[""]

    @own_settings()
    def with_dtype(self, dtype: str) -> Self:
        """This predictor with another dtype of weights and computation.

        bfloat16 weights take half the memory. GPUs, and CPUs with bfloat16 products, need about
        half the time. In int8, large matrices take a quarter of the memory, and their products on
        CPUs need less time. Softmax, normalization and scores stay float32. Any other
        dtype is an `InputError`, and int8 where TensorFlow has no such products.
        """
        model = with_dtype(self.model, dtype)
        return self if model is self.model else self.like(model, self.config)

    def like(self, model: keras.Model, config: DecodeConfig) -> Self:
        """A predictor of this class with another model of the same vocabulary, or other options."""
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

        With `config.distinct`, the predictions for a text are different texts. Arguments and errors
        are those of a call.
        """
        texts = as_texts(texts)
        given = columns_of(self.optional_inputs, texts, {"prefixes": prefixes, **inputs})
        return self._n_best(Call(texts, progress, given))

    @abstractmethod
    def _n_best(self, call: Call) -> NBest:
        """`n_best` of a call."""

    def joined(self, texts: Sequence[str], **inputs: Sequence[str] | None) -> list[str]:
        """The texts with the inputs that belong to the source, such as `target_tags`.

        Methods without these inputs, such as `score`, take the result. Arguments and errors are
        those of a call.
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
        A masked language model cannot score given predictions, which is an `InputError`.
        """
        texts = as_texts(texts)
        predictions = as_texts(predictions, "predictions", texts)
        return self._scores(Call(texts, progress, predictions=predictions))

    @abstractmethod
    def _scores(self, call: Call) -> list[PairScore]:
        """`score` of a call."""

    @own_settings()
    def attention(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> list[attention_record.AttentionRecord]:
        """The model's attention weights when it computes a given prediction for each text.

        Self-attention with `model.attention` linear has no weights, so its maps are left out.
        """
        texts = as_texts(texts)
        predictions = as_texts(predictions, "predictions", texts)
        maps: list[list[attention_record.AttentionMap]] = [[] for _ in texts]
        for indices, batch in self.attention_batches(Call(texts, predictions=predictions)):
            for kind, queries, keys, layers in batch:
                if not layers:
                    continue  # linear attention has no weights
                weights = np.stack([np.asarray(layer, np.float32) for layer in layers], 1)
                for i, *rows, matrix in zip(indices, queries, keys, weights, strict=True):
                    query, key = map(self.tokens, rows, SIDES[kind])
                    matrix = matrix[:, :, : len(query.pieces), : len(key.pieces)]
                    maps[i].append(attention_record.AttentionMap(kind, query, key, matrix))
        return list(map(attention_record.AttentionRecord, texts, predictions, maps))

    @abstractmethod
    def attention_batches(self, call: Call) -> Attentions:
        """The attention of the model when it computes given predictions."""

    def tokens(self, ids: Iterable[int], field: str) -> attention_record.Tokens:
        """The pieces and words of a row of ids without its padding; `field` is of the codec."""
        text_ids = (i for i in ids if i != PAD_ID)
        return attention_record.Tokens.of(text_ids, self.codec[field], self.symbols)

    @abstractmethod
    def graph(self, jit_compile: bool = False) -> TextGraph:
        """The graph that `save` writes; XLA compiles its search with `jit_compile`."""

    @abstractmethod
    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        """For each signature that `save` writes, inputs made from `texts` and their outputs."""

    def save(self, path: str | os.PathLike, jit_compile: bool = False) -> None:
        """Writes a SavedModel that takes and returns strings, with tokenizer and search.

        Its signatures, such as `serving_default`, return what the methods of this predictor return;
        see `SearchGraph` and `EncoderGraph`. `with_inputs` and `n_best_with_inputs` take the text
        and all of `optional_inputs`.

        Args:
            path: the folder to make.
            jit_compile: whether XLA compiles the search: faster for few sentences and small
                models. A stock TF Serving then needs --xla_cpu_compilation_enabled=true.

        Raises:
            InputError: for `jit_compile` without a search.
        """
        require_threads()
        write_saved_model(self.graph(jit_compile=True) if jit_compile else self._graph, path)

    def _in_parallel(
        self, run: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[tuple[Batch, Result]]:
        """Each batch with its result, in order; computes several batches in parallel."""
        batches = list(batches)
        count = len(batches)
        if count > 1:
            count = min(parallel_batches(self.config.parallel_batches), count)
        results = in_parallel(run, batches, max(1, count))
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


def load_predictor(run: Run, dtype: str = "float32") -> Predictor:
    """Loads the model of a run as a predictor, with the search of the run's configuration.

    Weights and computation are in float32 or bfloat16.

    Raises:
        InputError: for a missing or broken file of the run, or an unknown task.

    Example:
        >>> predict = load_predictor(Run.load("runs/demo", beam_size=2))
        >>> [prediction.text for prediction in predict([""])]
        ['']
    """
    task = TASKS.get(run.config.task.name).with_options(run.config.task)
    model = run.model(task.build_model)
    decode = run.config.decode
    if decode.split != "none" and not decode.split_language:
        language, *_ = direction_of(run.config) or [""]
        decode = replace(decode, split_language=language)
    return task.predictor(model, run.codec, decode).with_dtype(dtype)


def predictions_of(
    texts: Iterable[bytes | str],
    scores: Iterable[float],
    cut: bool,
    at_limit: bool = False,
    is_long: bool = False,
    parts: int = 1,
    word_probabilities: Sequence[bytes | str] = (),
    warnings: Sequence[bytes | str] = (),
) -> list[Prediction]:
    """The predictions for one text, best first, without the empty places of the row.

    The score of an empty place is `NEG_INF`. `cut`, `at_limit`, `is_long` and `parts` are about the
    input; see `Notice` and `Prediction`. `word_probabilities` and `warnings` are empty, or have a
    string for each text, as in the signature `n_best`.
    """
    holds = {Notice.CUT: cut, Notice.LENGTH_LIMIT: at_limit, Notice.LONG_INPUT: is_long}
    of_input = [notice for notice, is_true in holds.items() if is_true]
    strings = list(map(_string, texts))
    of_words = [tuple(map(float, x.split())) for x in word_probabilities] or [()] * len(strings)
    named = [_string(x).split() for x in warnings] or [[]] * len(strings)
    rows = zip(strings, scores, of_words, named, strict=True)
    return [
        Prediction(text, float(score), in_order({*of_input, *names}), parts, probabilities)
        for place, (text, score, probabilities, names) in enumerate(rows)
        if score != NEG_INF or place == 0
    ]


def with_unseen(rows: Sequence[Sequence[Prediction]], unseen: Sequence[bytes | str] = ()) -> NBest:
    """Adds unseen words to a row of translations for each text.

    `unseen` is empty, or has the `unseen_words` of each text with a space between two.
    """
    words_of_texts = [tuple(_string(words).split()) for words in unseen] or [()] * len(rows)
    return [
        [
            prediction._replace(
                notices=in_order({*prediction.notices, *[Notice.UNSEEN] * bool(words)}),
                unseen_words=words,
            )
            for prediction in row
        ]
        for row, words in zip(rows, words_of_texts, strict=True)
    ]


def _string(text: bytes | str) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


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
