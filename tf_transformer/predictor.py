"""Predictions: texts for texts, and the interface of an object that makes them."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import keras

from tf_transformer.config import DecodeConfig
from tf_transformer.tokenizer import Tokenizer

Progress = Callable[[int, int], object]
"""progress(inputs newly done, tokens predicted for them)."""


class Prediction(NamedTuple):
    """A predicted text and its score: log-probability over length penalty."""

    text: str
    score: float


class PairScore(NamedTuple):
    """The model's score of a given text: log-probability over length penalty, and without."""

    score: float
    log_probability: float


class SignatureCase(NamedTuple):
    """Inputs of a SavedModel's signature, and the outputs that a predictor gives for them.

    All are by name, with one item per text. Strings and numbers of `outputs` may be lists.
    """

    inputs: dict[str, list[str]]
    outputs: dict[str, list]


def no_progress(inputs: int, tokens: int) -> None:
    """Reports nothing."""


class Predictor(Protocol):
    """A tokenizer, a model and a search: `Translator` is one.

    Attributes:
        model: the built model.
        tokenizer: its tokenizer.
        config: options of the search.
        max_source_length: longest input in tokens; longer inputs are cut.
    """

    model: keras.Model
    tokenizer: Tokenizer
    config: DecodeConfig
    max_source_length: int

    def __call__(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[Prediction]:
        """The best prediction for each text; `prefixes` are how predictions start."""

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Prediction]]:
        """`config.num_hypotheses` predictions for each text, best first, at least one."""

    def score(
        self, texts: Sequence[str], predictions: Sequence[str], /, progress: Progress = no_progress
    ) -> list[PairScore]:
        """The scores of given predictions."""

    def with_dtype(self, dtype: str) -> "Predictor":
        """The same predictor with weights and computation in float32 or bfloat16."""

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        """For each signature that `save` writes, a case made from `texts`."""

    def save(self, path: str | os.PathLike, jit_compile: bool = False) -> None:
        """Writes a SavedModel that takes and gives strings."""
