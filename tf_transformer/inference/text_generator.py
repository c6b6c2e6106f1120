"""Continues texts and scores them with a language model."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.batch_predictor import BatchAttention, pad
from tf_transformer.inference.generation import GenerationGraph
from tf_transformer.inference.predictor import (
    PairScore,
    Prediction,
    Progress,
    SignatureCase,
    as_texts,
    no_progress,
)
from tf_transformer.inference.search import log_probabilities
from tf_transformer.inference.text_predictor import TextPredictor, read_ids
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.run.weights import load_model
from tf_transformer.text.special_ids import BOS_ID
from tf_transformer.text.tokenizer import Tokenizer


class TextScore(NamedTuple):
    """The log-probability of a text, and the tokens that it is the sum over."""

    log_probability: float  # nats
    tokens: int  # with the end token


class Window(NamedTuple):
    """A part of a text that is scored at once."""

    text: int  # index of the text
    before: int  # the id before the window
    ids: list[int]
    scored_from: int  # index of the first id that counts; those before are context


class TextGenerator(TextPredictor):
    """Predicts how texts go on; an empty text is a prompt, too.

    A prediction follows its prompt directly: it begins with a space where a new word begins, and
    prompt + prediction is the text. After a prompt that ends in a space a new word follows. Of
    prompts longer than `max_source_length` the last tokens count. The constraints of a
    `DecodeConfig` apply to predictions: they may repeat the prompt.

    Args:
        model: the built `LanguageModel`.
        tokenizer: its tokenizer.
        config: how to search.

    Raises:
        InputError: for `coverage_penalty`, or a piece that the vocabulary does not have.

    Example:
        >>> from tf_transformer.text.tokenizer import BYTES, Tokenizer
        >>> model = LanguageModel(BYTES)
        >>> model.build()
        >>> generator = TextGenerator(model, Tokenizer.train([], BYTES), DecodeConfig())
        >>> generator.score_texts(["Tom is"])[0].tokens
        7
    """

    output: ClassVar[str] = "continuation"
    shortest_source: ClassVar[int] = 1

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, config: DecodeConfig):
        if config.coverage_penalty:
            raise InputError(
                "decode.coverage_penalty needs a model that attends to a source; for a language "
                "model it must be 0."
            )
        super().__init__(model, tokenizer, config)
        row = tf.TensorSpec((None,), tf.int32)
        self._log_probabilities = tf.function(
            lambda *inputs: log_probabilities(model, *inputs),
            input_signature=[row, tf.TensorSpec((None, None), tf.int32), row],
            autograph=False,
        )

    @classmethod
    def from_run(
        cls, run_dir: str | os.PathLike, dtype: str = "float32", **decode_options: Any
    ) -> "TextGenerator":
        """Loads a run; see `Translator.from_run`."""
        return cls(*load_model(run_dir, build_language_model, **decode_options)).with_dtype(dtype)

    def encode_target(self, text: str) -> list[int]:
        return self.tokenizer.encode_continuation(text)

    def encode_prefix(self, text: str, prefix: str) -> list[int]:
        opens_word = self.tokenizer.ends_in_space(text + prefix)
        return self.encode_target(prefix)[:-1] + [BOS_ID] * opens_word

    def decode(self, ids: Sequence[int], text: str) -> str:
        prompt = self.encode(text)[:-1]
        rest = self.tokenizer.decode([*prompt, *ids])[len(self.tokenizer.decode(prompt)) :]
        return rest.removeprefix(" ") if self.tokenizer.ends_in_space(text) else rest

    def graph(self, jit_compile: bool) -> GenerationGraph:
        search = self.search(self.config, static_shapes=jit_compile)
        options = (self.max_source_length, jit_compile, self.output)
        return GenerationGraph(search, self.tokenizer, *options)

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Prediction]]:
        """All predictions for each text, best first; see `TextPredictor.n_best`.

        Raises:
            InputError: when a prompt with its prefix has more tokens than the model has positions.
        """
        texts = as_texts(texts)
        if prefixes is None and any(map(self.tokenizer.ends_in_space, texts)):
            prefixes = [""] * len(texts)
        if prefixes is not None:
            prefixes = as_texts(prefixes, "prefixes", texts)
            prefixes = list(map(self._as_continuation, texts, prefixes))
            self._check_positions(texts, prefixes)
        return super().n_best(texts, prefixes, progress)

    def _as_continuation(self, prompt: str, text: str) -> str:
        """The text as it follows the prompt: a line begins with the space of its first word."""
        begins_line = len(self.encode(prompt)) == 1 and self._lines_begin_with_blank
        begins_word = begins_line or self.tokenizer.ends_in_space(prompt)
        return " " + text if text and begins_word else text

    @property
    def _lines_begin_with_blank(self) -> bool:
        return len(self.tokenizer.boundary_ids) > len(self.tokenizer.boundary.encode())

    def _check_positions(self, texts: Sequence[str], prefixes: Sequence[str]) -> None:
        most = self.model.position.max_length
        for text, prefix in zip(texts, prefixes, strict=True) if most else ():
            prompt = min(len(self.encode(text)), self.max_source_length)
            if prompt + len(self.encode_target(prefix)) - 1 > most:
                raise InputError(
                    f"the prompt {text!r} with its prefix has more than model.max_length ({most}) "
                    "tokens. Shorten them."
                )

    def score(
        self,
        texts: Sequence[str],
        predictions: Sequence[str],
        progress: Progress = no_progress,
    ) -> list[PairScore]:
        """The model's score of each of `predictions` as the rest of its text, up to the end.

        For a prediction of a search without constraints this is the search's own score, if it
        ends, its prompt was not cut and the tokenizer splits it as the search did.

        Args:
            texts: prompts of any length.
            predictions: one per prompt, of any length.
            progress: called after each batch.
        """
        prompts, rests = self._prompts_and_rests(texts, predictions)
        rows = [[*prompt, *rest] for prompt, rest in zip(prompts, rests, strict=True)]
        totals = self._score_rows(rows, list(map(len, prompts)), progress)
        alpha = self.config.length_penalty
        return [
            PairScore(total / ((5 + len(rest)) / 6) ** alpha, total)
            for total, rest in zip(totals, rests, strict=True)
        ]

    def _prompts_and_rests(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Ids of the prompts, and of the predictions that follow them."""
        texts = as_texts(texts)
        predictions = as_texts(predictions, "predictions", texts)
        return [self.encode(text)[:-1] for text in texts], [
            self.encode_target(self._as_continuation(text, prediction))
            for text, prediction in zip(texts, predictions, strict=True)
        ]

    def attention_batches(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> Iterator[tuple[list[int], list[BatchAttention]]]:
        """Batches of prompts with their predictions: their indices, and the decoder's attention."""
        both = self._prompts_and_rests(texts, predictions)
        rows, _ = self._cut([*prompt, *rest] for prompt, rest in zip(*both, strict=True))
        for indices in self._batches(list(map(len, rows))):
            ids = pad([rows[i] for i in indices])
            read = read_ids(ids)
            weights = self.model.decoder.by_position(self.model.run(read).attention)
            yield indices, [BatchAttention("decoder", ids, read, weights)]

    def score_texts(
        self, texts: Sequence[str], progress: Progress = no_progress
    ) -> list[TextScore]:
        """The log-probability of each text with its end.

        A text of more than `max_source_length` tokens is scored in windows of this size, each half
        a window after the one before, so that every token but the first ones is predicted from at
        least half a window.

        Args:
            texts: any strings; an empty one is the end token alone.
            progress: called after each batch.
        """
        texts = as_texts(texts)
        rows = self.tokenizer.encode_batch(texts)
        totals = self._score_rows(rows, [0] * len(rows), progress)
        return [TextScore(total, len(row)) for total, row in zip(totals, rows, strict=True)]

    def _score_rows(
        self, rows: Sequence[list[int]], scored_from: Sequence[int], progress: Progress
    ) -> list[float]:
        """The summed log-probability of each row's ids from an index on."""
        windows = [
            window
            for text, (row, start) in enumerate(zip(rows, scored_from, strict=True))
            for window in divide(text, row, start, self.max_source_length)
        ]
        totals = np.zeros(len(rows))
        remaining = np.bincount([window.text for window in windows], minlength=len(rows))

        def run(indices: list[int]) -> tf.Tensor:
            batch = [windows[i] for i in indices]
            return self._log_probabilities(
                np.array([window.before for window in batch], np.int32),
                pad([window.ids for window in batch]),
                np.array([window.scored_from for window in batch], np.int32),
            )

        lengths = [len(window.ids) for window in windows]
        for indices, found in self._in_parallel(run, self._batches(lengths)):
            of_text = np.array([windows[i].text for i in indices])
            np.add.at(totals, of_text, np.asarray(found))
            np.subtract.at(remaining, of_text, 1)
            done = (remaining[np.unique(of_text)] == 0).sum()
            progress(int(done), sum(lengths[i] for i in indices))
        return totals.tolist()

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        cases = super().signatures(texts)
        scores = self.score_texts(texts)
        numbers: dict[str, list] = {
            "log_probability": [score.log_probability for score in scores],
            "tokens": [score.tokens for score in scores],
        }
        return cases | {
            "generate": cases["serving_default"],
            "score": SignatureCase({"text": list(texts)}, numbers),
        }

    def _cut(self, rows) -> tuple[list[list[int]], list[bool]]:
        """The last `max_source_length` ids of rows, and whether each was cut."""
        rows = list(rows)
        longest = self.max_source_length
        return [ids[-longest:] for ids in rows], [len(ids) > longest for ids in rows]


def divide(text: int, ids: list[int], scored_from: int, size: int) -> Iterator[Window]:
    """Windows in which each id of a text from `scored_from` on counts once.

    Example:
        >>> for window in divide(0, [5, 6, 7, 8, 2], 0, size=4):
        ...     print(window.before, window.ids, window.ids[window.scored_from :])
        1 [5, 6, 7, 8] [5, 6, 7, 8]
        6 [7, 8, 2] [2]
    """
    stride = max(1, size // 2)
    for start in range(0, max(1, len(ids) - size + stride), stride):
        first = max(scored_from - start, size - stride if start else 0)
        if first < min(size, len(ids) - start):
            before = ids[start - 1] if start else BOS_ID
            yield Window(text, before, ids[start : start + size], first)


def build_language_model(config: Config, vocabulary_size: int, dtype: str) -> LanguageModel:
    """A new language model with all its weights."""
    model = LanguageModel(vocabulary_size, config.model, dtype=dtype)
    model.build()
    return model
