"""Samples of a validation for TensorBoard: predictions, and a picture of attention."""

import importlib.util
import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from tf_transformer.data.spread import spread
from tf_transformer.inference.attention_record import Tokens
from tf_transformer.inference.predictor import Predictor
from tf_transformer.tasks.task import Task, TestSet
from tf_transformer.visualization.attention_picture import last_layer_picture

ROWS = 4  # in the table
LONGEST_CELL = 500  # characters
PICTURE_LENGTH, LONGEST_PICTURE = 80, 200  # characters of input and output together


class Samples(NamedTuple):
    """Samples of one validation."""

    table: str = ""  # Markdown
    picture: bytes = b""  # PNG


def samples_of(
    task: Task, predictor: Predictor, test: TestSet, predictions: Sequence[str]
) -> Samples:
    """Some of the scored examples with their predictions, and the attention of one example."""
    return Samples(table(test, predictions), picture(predictor, task.attended(test)))


def table(test: TestSet, predictions: Sequence[str]) -> str:
    """A Markdown table of some examples."""
    rows = list(zip(test.inputs, predictions, test.references, strict=True))
    lines = [" | ".join(map(_cell, row)) for row in spread(rows, ROWS)]
    lines = ["input | prediction | reference", "--- | --- | ---", *lines]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(text: str) -> str:
    """The text as one line, with punctuation escaped for Markdown and HTML."""
    text = " ".join(text.split())
    text = text[:LONGEST_CELL] + "…" * (len(text) > LONGEST_CELL)
    return re.sub(r"[!-/:-@[-`{-~]", lambda match: f"&#{ord(match[0])};", text)


def picture(predictor: Predictor, test: TestSet) -> bytes:
    """A picture of the attention of the last layer between pieces.

    A model with a source shows its attention to the source. The example is the same at each
    validation: its length is nearest to `PICTURE_LENGTH`. The model reads the example's reference,
    so that the pictures of two validations differ only by the weights.

    The PNG file is empty without matplotlib, without attention weights, or if all examples are too
    long.
    """
    attention = getattr(predictor, "attention", None)
    if attention is None or importlib.util.find_spec("matplotlib") is None:
        return b""
    text, output = min(
        zip(*test, strict=True), key=lambda pair: abs(len("".join(pair)) - PICTURE_LENGTH)
    )
    if len(text + output) > LONGEST_PICTURE:
        return b""
    try:
        (record,) = attention([text], [output])
    except AttributeError:  # a search needs no model that returns its attention
        return b""
    if not record.maps:
        return b""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about characters that the font does not have
        last = record.maps[-1]
        last = last._replace(queries=_each_alone(last.queries), keys=_each_alone(last.keys))
        return last_layer_picture(record._replace(maps=[last]), ".png")


def _each_alone(tokens: Tokens) -> Tokens:
    """The pieces, each as a word, because some languages have few or no spaces."""
    return Tokens(tokens.pieces, tokens.pieces, list(range(len(tokens.pieces))))
