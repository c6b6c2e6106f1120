"""Texts that a prediction takes, and what it takes beside them: a prefix, a language, terms.

The graph of a predictor lists its inputs. Signatures, predictors, their check in an export and
`SavedTranslator` take each input from the list.
"""

import io
import itertools
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.machine.threads import require_threads
from tf_transformer.text.terms import may_apply, units

WITH_INPUTS = {"serving_default": "with_inputs", "n_best": "n_best_with_inputs"}
"""The signatures with all inputs, by the signatures that take the text alone."""
TAG_OF_NAME = r"^([^>].*)$", r">>\1<<"  # a pattern, and what replaces it; a tag stays as it is


@dataclass(frozen=True)
class Input:
    """A text that may be given for each text. The text "" stands for no input."""

    name: str  # in a signature; an input of the problem is also a field of `Problem`
    plural: str  # the argument of a predictor, and the option of `translate.py`
    # What it becomes a part of: `encode` returns new texts, or a field of the search's `Problem`.
    into: Literal["source", "problem"]
    # A function of the graph, the texts (B,) and the given strings (B,). It returns string (B,) or
    # int32 (B, None). The strings are None in a call without inputs. An input of the problem may
    # return None, for these or for all.
    encode: Callable[[Any, tf.Tensor, tf.Tensor | None], Any]
    # From a codec to the values that may be given; None: any text. A model without such values does
    # not have the input.
    choices: Callable[[Any], Iterable[str]] | None = None
    label: str = ""  # of its field on the page of the demo; "": the name
    has_lines: bool = False  # whether a string may have several lines
    # Whether each part of a divided text gets an input of the problem. Else the text stays whole.
    of_parts: bool = False
    # Whether texts with an input of the problem share no batch with others: it changes the search.
    has_own_batches: bool = False
    # From a text and a given string to an equivalent string, or an `InputError`.
    checked: Callable[[str, str], str] = lambda text, given: given
    # From a text and a prediction to a string for the check of an export.
    example: Callable[[str, str], str] = lambda text, prediction: "".join(prediction.split()[:1])

    def exists(self, codec: Any) -> bool:
        """Whether a model with this codec has the input."""
        return self.choices is None or any(self.choices(codec))

    def examples(self, codec: Any, texts: Sequence[str], predictions: Sequence[str]) -> list[str]:
        """Values for a check: each choice in turn, or the examples of every second prediction."""
        if self.choices:
            values = itertools.cycle(["", *sorted(self.choices(codec))])
            return list(itertools.islice(values, len(predictions)))
        return [
            self.example(*pair) if number % 2 else ""
            for number, pair in enumerate(zip(texts, predictions, strict=True))
        ]


def with_tag(graph: Any, text: tf.Tensor, tag: tf.Tensor | str | None) -> tf.Tensor:
    """Puts tags (B,), or one tag, before the strings (B,) that have text and no tag; "": none."""
    own, rest = graph.codec["source"].split_tag(text)
    gets_tag = tf.equal(own, "") & tf.not_equal(rest, "") & tf.not_equal(tag, "")
    return tf.where(gets_tag, tf.strings.join([tag, " ", text]), text)


def with_language(graph: Any, text: tf.Tensor, language: tf.Tensor) -> tf.Tensor:
    """`with_tag` for the tags of languages (B,), or their names. An unknown one is an error."""
    tag = tf.strings.regex_replace(language, *TAG_OF_NAME)
    names = sorted(graph.codec["source"].tags)
    known = tf.reduce_any(tf.equal(tag[:, None], tf.constant(["", *names])), 1)
    message = f"unknown language; this model has {', '.join(names)}, but the request has"
    check = tf.debugging.Assert(tf.reduce_all(known), [message, tf.boolean_mask(tag, ~known)])
    with tf.control_dependencies([check]):
        return with_tag(graph, text, tf.identity(tag))


# The first ids of the prediction. "": the search is free.
PREFIX = Input(
    "prefix",
    "prefixes",
    "problem",
    lambda graph, text, given: graph.encode_prefix(text, given),
    label="Start of each translation",
)
# The target language: its tag, such as >>por<<, or the name in the tag, such as por. "": that of
# `DecodeConfig.target_tag`.
LANGUAGE = Input(
    "language",
    "languages",
    "source",
    lambda graph, text, given: with_language(graph, text, given),
    lambda codec: codec["source"].tags,
    "Target language",
    checked=lambda text, given: re.sub(*TAG_OF_NAME, given),
)
# Lines with a phrase, a tab and the translation that it must get. "": the search is free. With
# `DecodeConfig.terms_as` text, it is always free.
TERMS = Input(
    "terms",
    "terms",
    "problem",
    lambda graph, text, given: (
        None if graph.config.terms_as == "text" else graph.encode_terms(text, given)
    ),
    label="Terms: a line for each, like car = Auto",
    has_lines=True,
    of_parts=True,
    has_own_batches=True,
    checked=may_apply,
    example=lambda text, prediction: "\t".join(
        max(units(side), key=len, default="") for side in (text, prediction)
    ),
)
INPUTS = (PREFIX, LANGUAGE, TERMS)
OF_EARLIER_EXPORTS = (replace(LANGUAGE, name="target_tag"),)  # with this name in signatures


def inputs_in(names: Container[str]) -> list[Input]:
    """The inputs among the names of a signature's inputs."""
    return [kind for kind in (*INPUTS, *OF_EARLIER_EXPORTS) if kind.name in names]


def columns_of(
    inputs: Iterable[Input], texts: Sequence[str], given: Mapping[str, Iterable[str] | None]
) -> dict[str, list[str]]:
    """The values of all inputs by name, "" for an input that is not given; {} if none is given.

    `given` has one value for each text, by `Input.plural`; None: not given. Anything else is an
    `InputError`.
    """
    named = {kind.plural: kind for kind in inputs}
    columns = {}
    for plural, values in given.items():
        if values is None:
            continue
        if plural not in named:
            raise InputError(
                f"this model takes no {plural}; it takes {', '.join(named) or 'texts alone'}. "
                f"Leave out --{plural}."
            )
        kind = named[plural]
        pairs = zip(texts, as_texts(values, plural, texts), strict=True)
        columns[kind.name] = [kind.checked(*pair) for pair in pairs]
    if not columns:
        return {}
    return {kind.name: columns.get(kind.name, [""] * len(texts)) for kind in named.values()}


def as_texts(
    items: Iterable[str], name: str = "texts", as_many_as: Sequence[str] | None = None
) -> list[str]:
    """Checks the texts that a predictor gets, and makes a list of them.

    They may be in a list, a NumPy array, a column of a table, a tensor, a generator, or another
    ordered iterable. Bytes, such as the items of string tensors, are read as UTF-8. Anything else,
    such as a single text, a set or a missing value, is an `InputError`; so is a call in a fork of a
    process that has loaded a model. Errors call items `name`. Each of `as_many_as` needs an item.

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
