"""Predictions: texts for texts, and the interface of an object that makes them."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import keras

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.tokenizer import Tokenizer

Progress = Callable[[int, int], object]
"""progress(inputs newly done, tokens predicted for them)."""


class _ScoredText(NamedTuple):
    text: str
    score: float


class Prediction(_ScoredText):
    """A predicted text and its score: log-probability over length penalty.

    Attributes:
        text: the predicted text.
        score: its score.
        cut: whether the input was longer than `max_source_length` and was cut.
        at_limit: whether the best prediction for the input reached its length limit.
        truncated: whether one of both holds; an export does not tell which one.

    The tuple has two items, text and score.
    """

    cut: bool = False
    at_limit: bool = False
    truncated: bool = False

    def __new__(
        cls,
        text: str,
        score: float,
        truncated: bool = False,
        *,
        cut: bool = False,
        at_limit: bool = False,
    ) -> "Prediction":
        prediction = super().__new__(cls, text, score)
        prediction.cut, prediction.at_limit = cut, at_limit
        prediction.truncated = truncated or cut or at_limit
        return prediction


class _Scores(NamedTuple):
    score: float
    log_probability: float


class PairScore(_Scores):
    """The model's score of a given text: log-probability over length penalty, and without.

    Attributes:
        score: the score.
        log_probability: the sum of the log-probabilities of its tokens.
        cut: whether one of the two texts was longer than `max_source_length` and was cut. Not an
            item of the tuple, which has two.
    """

    cut: bool = False

    def __new__(cls, score: float, log_probability: float, cut: bool = False) -> "PairScore":
        scores = super().__new__(cls, score, log_probability)
        scores.cut = cut
        return scores


class SignatureCase(NamedTuple):
    """Inputs of a SavedModel's signature, and the outputs that a predictor gives for them.

    All are by name, with one item per text. Strings and numbers of `outputs` may be lists.
    """

    inputs: dict[str, list[str]]
    outputs: dict[str, list]


def require_texts(**lists: Sequence[str] | None) -> None:
    """Raises an `InputError` for a text in place of a list, and for lists of different lengths.

    To Python a text is also a sequence of texts, its characters. None: the list was not given.
    """
    given = {name: texts for name, texts in lists.items() if texts is not None}
    for name, texts in given.items():
        if isinstance(texts, str | bytes):
            raise InputError(
                f"expected a list of {name}, got one text ({type(texts).__name__}); "
                "use translator([...])[0]."
            )
    (first, some), *rest = given.items()
    for second, others in rest:
        if len(some) != len(others):
            raise InputError(
                f"expected as many {second} as {first}, got {len(others)} {second} and "
                f"{len(some)} {first}."
            )


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
