"""Predicted texts, and the interface of predictors."""

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

import keras

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import NEG_INF
from tf_transformer.errors import InputError
from tf_transformer.inference.notices import Notice, of_translation
from tf_transformer.machine.threads import require_threads
from tf_transformer.registry import TASKS
from tf_transformer.run.run import Run
from tf_transformer.text.codec import Codec

Progress = Callable[[int, int], object]
"""A function of two numbers: inputs done since the last call, and tokens predicted for them."""


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


def predictions_of(
    texts: Iterable[bytes | str],
    scores: Iterable[float],
    cut: bool,
    at_limit: bool = False,
    is_long: bool = False,
) -> list[Prediction]:
    """The predictions for one text, best first, without the empty places of the row.

    Args:
        texts: the texts of a row of predictions; "" at an empty place.
        scores: the scores of the texts; `NEG_INF` at an empty place.
        cut: whether the input was cut.
        at_limit: whether the best prediction reached its length limit.
        is_long: whether the input is longer than any line of the training text.
    """
    holds = {Notice.CUT: cut, Notice.LENGTH_LIMIT: at_limit, Notice.LONG_INPUT: is_long}
    notices = tuple(notice for notice, is_true in holds.items() if is_true)
    return [
        Prediction(_decoded(text), float(score), notices)
        for place, (text, score) in enumerate(zip(texts, scores, strict=True))
        if score != NEG_INF or place == 0
    ]


def with_notices(
    texts: Sequence[str], rows: Sequence[Sequence[Prediction]]
) -> list[list[Prediction]]:
    """Adds the notices of texts and their translations to a row of translations for each text."""
    return [
        [each._replace(notices=each.notices + of_translation(text, each.text)) for each in row]
        for text, row in zip(texts, rows, strict=True)
    ]


def _decoded(text: bytes | str) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


class SignatureCase(NamedTuple):
    """Inputs for a signature of a SavedModel, and a predictor's outputs for them.

    Inputs and outputs are lists by name, with one item per text. An item of an output may be a
    list.
    """

    inputs: dict[str, list[str]]
    outputs: dict[str, list]


def as_texts(
    items: Iterable[str], name: str = "texts", as_many_as: Sequence[str] | None = None
) -> list[str]:
    """Checks the texts that a predictor gets, and makes a list of them.

    Items keep the order of the iteration. Bytes, such as the items of string tensors, are read as
    UTF-8.

    Args:
        items: a list, a NumPy array, a column of a table, a tensor, a generator, or another
            ordered iterable.
        name: the name of the items in error messages.
        as_many_as: texts that each need one item.

    Raises:
        InputError: for a single text; for a table, a mapping, a set or an open file; for an item
            that is not a text, such as a missing value; for a wrong number of items; in a fork of
            a process that has loaded a model.

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
            f"expected a list of {name}, or another ordered iterable of texts, got "
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
        return str(item)  # item may be of a subclass of str, such as NumPy's
    value = item.numpy() if hasattr(item, "numpy") else item  # a scalar tensor
    if not isinstance(value, bytes):
        raise InputError(
            f"item {number:,} of {name} must be a text, got {item!r:.80}. Replace missing values, "
            'for example with "".'
        )
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"item {number:,} of {name} is not UTF-8: {error}.") from error


def no_progress(inputs: int, tokens: int) -> None:
    """Ignores its arguments; the default of `progress`."""


class Predictor(Protocol):
    """A codec, a model and a search, such as `Translator`.

    Attributes:
        model: the built model.
        codec: the codec of the model, with its tokenizers.
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
        **inputs: Sequence[str] | None,
    ) -> list[Prediction]:
        """The best prediction for each text; it begins with its prefix."""

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
        **inputs: Sequence[str] | None,
    ) -> list[list[Prediction]]:
        """Up to `config.num_hypotheses` predictions for each text, best first; at least one."""

    def score(
        self, texts: Sequence[str], predictions: Sequence[str], /, progress: Progress = no_progress
    ) -> list[PairScore]:
        """The score of a given prediction for each text."""

    def joined(self, texts: Sequence[str], **inputs: Sequence[str] | None) -> list[str]:
        """The texts with the inputs that belong to the source, such as `target_tags`."""

    def with_dtype(self, dtype: str) -> "Predictor":
        """This predictor with weights and computation in float32 or bfloat16."""

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        """For each signature that `save` writes, inputs made from `texts` and their outputs."""

    def save(self, path: str | os.PathLike, jit_compile: bool = False) -> None:
        """Writes a SavedModel that takes and returns strings."""


def load_predictor(run: Run, dtype: str = "float32") -> Predictor:
    """Loads the model of a run as a predictor, with the search of the run's configuration.

    Args:
        run: the run.
        dtype: dtype of weights and computation, float32 or bfloat16.

    Raises:
        InputError: for a missing or broken file of the run, or an unknown task.

    Example:
        >>> predict = load_predictor(Run.load("runs/demo", beam_size=2))
        >>> [prediction.text for prediction in predict([""])]
        ['']
    """
    task = TASKS.get(run.config.task.name).with_options(run.config.task)
    model = run.model(task.build_model)
    return task.predictor(model, run.codec, run.config.decode).with_dtype(dtype)
