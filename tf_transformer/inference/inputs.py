"""Texts that a prediction takes beside its own text: a prefix, the tag of a target language.

The graph of a predictor lists its inputs. Signatures, predictors, their check in an export and
`SavedTranslator` take each input from the list.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.inference.predictor import as_texts

WITH_INPUTS = {"serving_default": "with_inputs", "n_best": "n_best_with_inputs"}
"""The signatures with all inputs, by the signatures that take the text alone."""


@dataclass(frozen=True)
class Input:
    """A text that may be given for each text. The text "" stands for no input.

    Attributes:
        name: the input of a signature. An input of the problem is also a field of `Problem`.
        plural: the argument of a predictor, and the option of `translate.py`.
        into: what the input becomes a part of. source: `encode` returns new texts. problem:
            `encode` returns a field of the `Problem` of the search.
        encode: function of the graph, the texts (B,) and the given strings (B,). It returns string
            (B,) or int32 (B, None). The strings are None in a call without inputs; an input of the
            problem may return None for them.
        choices: function from a codec to the values that may be given; None: any text. A model
            without such values does not have the input.
    """

    name: str
    plural: str
    into: Literal["source", "problem"]
    encode: Callable[[Any, tf.Tensor, tf.Tensor | None], Any]
    choices: Callable[[Any], Iterable[str]] | None = None

    def exists(self, codec: Any) -> bool:
        """Whether a model with this codec has the input."""
        return self.choices is None or any(self.choices(codec))

    def examples(self, codec: Any, predictions: Sequence[str]) -> list[str]:
        """Values for a check: each choice in turn, or the first words of some predictions."""
        if self.choices:
            values = itertools.cycle(["", *sorted(self.choices(codec))])
            return list(itertools.islice(values, len(predictions)))
        return [
            "".join(text.split()[:1]) if number % 2 else ""
            for number, text in enumerate(predictions)
        ]


def with_tag(graph: Any, text: tf.Tensor, tag: tf.Tensor | str | None) -> tf.Tensor:
    """Puts tags (B,), or one tag, before the strings (B,) that have text and no tag of their own.

    Args:
        graph: the graph, for its codec.
        text: string tensor (B,).
        tag: the tags; "": none.
    """
    own, rest = graph.codec["source"].split_tag(text)
    gets_tag = tf.equal(own, "") & tf.not_equal(rest, "") & tf.not_equal(tag, "")
    return tf.where(gets_tag, tf.strings.join([tag, " ", text]), text)


# The first ids of the prediction. "": the search is free.
PREFIX = Input(
    "prefix", "prefixes", "problem", lambda graph, text, given: graph.encode_prefix(text, given)
)
# The tag of the target language, such as >>por<<. "": the language of `DecodeConfig.target_tag`.
TARGET_TAG = Input(
    "target_tag", "target_tags", "source", with_tag, lambda codec: codec["source"].tags
)
INPUTS = (PREFIX, TARGET_TAG)


def columns_of(
    inputs: Iterable[Input], texts: Sequence[str], given: Mapping[str, Iterable[str] | None]
) -> dict[str, list[str]]:
    """The values of all inputs by name, "" for an input that is not given; {} if none is given.

    Args:
        inputs: the inputs.
        texts: the texts of a prediction.
        given: one value for each text, by `Input.plural`; None: not given.

    Raises:
        InputError: for an unknown input, values that are not texts, or a wrong number of values.
    """
    named = {each.plural: each for each in inputs}
    columns = {}
    for plural, values in given.items():
        if values is None:
            continue
        if plural not in named:
            raise InputError(
                f"this model takes no {plural}; it takes {', '.join(named) or 'texts alone'}. "
                f"Leave out --{plural}."
            )
        columns[named[plural].name] = as_texts(values, plural, texts)
    if not columns:
        return {}
    return {each.name: columns.get(each.name, [""] * len(texts)) for each in named.values()}
