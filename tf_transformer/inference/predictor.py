"""Predictions: texts for texts, and the interface of an object that makes them."""

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

import keras

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import NEG_INF
from tf_transformer.errors import InputError
from tf_transformer.machine.threads import require_threads
from tf_transformer.text.codec import Codec

Progress = Callable[[int, int], object]
"""progress(inputs newly done, tokens predicted for them)."""


class Prediction(NamedTuple):
    """A predicted text and its score: log-probability over length penalty.

    Example:
        >>> prediction = Prediction("eins", -0.5, at_limit=True)
        >>> prediction.text, prediction.truncated
        ('eins', True)
    """

    text: str
    score: float
    cut: bool = False  # whether the input was longer than `max_source_length`
    at_limit: bool = False  # whether the best prediction for the input reached its length limit

    @property
    def truncated(self) -> bool:
        """Whether the input was cut, or the best prediction for it has no end."""
        return self.cut or self.at_limit


class PairScore(NamedTuple):
    """The model's score of a given text."""

    score: float  # log-probability over length penalty
    log_probability: float  # sum over the tokens of the text, nats
    cut: bool = False  # whether one of the two texts was longer than `max_source_length`


def predictions_of(
    texts: Iterable[bytes | str], scores: Iterable[float], cut: bool, at_limit: bool
) -> list[Prediction]:
    """The predictions for one text, best first, without those that fill its row up.

    Args:
        texts: of a row; "" where a search found no more.
        scores: of these; `NEG_INF` where a search found no more.
        cut: whether the text was cut.
        at_limit: whether the best prediction reached its length limit.
    """
    return [
        Prediction(_decoded(text), float(score), bool(cut), bool(at_limit))
        for place, (text, score) in enumerate(zip(texts, scores, strict=True))
        if score != NEG_INF or place == 0
    ]


def _decoded(text: bytes | str) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


class SignatureCase(NamedTuple):
    """Inputs of a SavedModel's signature, and the outputs that a predictor gives for them.

    All are by name, with one item per text. Strings and numbers of `outputs` may be lists.
    """

    inputs: dict[str, list[str]]
    outputs: dict[str, list]


def as_texts(
    items: Iterable[str], name: str = "texts", as_many_as: Sequence[str] | None = None
) -> list[str]:
    """A list of any iterable of texts: each predictor, and each of its methods, begins with it.

    Items are taken in their order, whatever an index means to the iterable. Bytes, as tensors of
    strings hold them, are read as UTF-8.

    Args:
        items: a list, a NumPy array, a column of a table, a tensor, a generator, ...
        name: what they are, for errors.
        as_many_as: texts that need one item each.

    Raises:
        InputError: for one text, whose items would be its characters; for a table, a mapping, a
            set or an open file; for an item that is not a text, such as a missing value; for
            another number of items; and in a fork of a process that has loaded a model.

    Example:
        >>> as_texts(text.lower() for text in ("One", "Two"))
        ['one', 'two']
    """
    require_threads()
    if isinstance(items, str | bytes | bytearray):
        raise InputError(
            f"expected a list of {name}, got one text ({type(items).__name__}); "
            "use translator([...])[0]."
        )
    try:
        iterator = iter(items)
    except TypeError:
        iterator = None
    is_other = isinstance(items, Mapping | Set | io.IOBase) or getattr(items, "ndim", 1) != 1
    if iterator is None or is_other:
        raise InputError(
            f"expected a list of {name}, or another iterable with one text after the other, got "
            f"{type(items).__name__}."
        )
    texts = [_as_text(item, number, name) for number, item in enumerate(iterator, 1)]
    if as_many_as is not None and len(texts) != len(as_many_as):
        raise InputError(
            f"expected as many {name} as texts, got {len(texts)} {name} and "
            f"{len(as_many_as)} texts."
        )
    return texts


def _as_text(item: Any, number: int, name: str) -> str:
    if isinstance(item, str):
        return str(item)  # of a subclass of str, such as NumPy's
    value = item.numpy() if hasattr(item, "numpy") else item  # of a scalar tensor
    if not isinstance(value, bytes):
        raise InputError(
            f"item {number:,} of {name} must be a text, got {item!r:.80}. Replace missing values, "
            'for example by "".'
        )
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"item {number:,} of {name} is not UTF-8: {error}.") from error


def no_progress(inputs: int, tokens: int) -> None:
    """Reports nothing."""


class Predictor(Protocol):
    """A codec, a model and a search: `Translator` is one.

    Attributes:
        model: the built model.
        codec: its tokenizers.
        config: options of the search.
        max_source_length: longest input in tokens; longer inputs are cut.
    """

    model: keras.Model
    codec: Codec
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
