"""Weights that a training leaves as they are."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import keras

from tf_transformer.errors import InputError


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Makes the weights with matching names not trainable.

    Args:
        model: the built model.
        patterns: names of parts; `*` stands for any text. "encoder" is the whole encoder,
            "*/layer_0" the first layer of each stack.

    Raises:
        InputError: for a pattern without weights, and if no weights are left to train.

    Example:
        >>> from tf_transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> freeze(model, ["encoder", "*_embedding"])
        >>> {name_of(weight).partition("/")[0] for weight in model.trainable_variables}
        {'decoder'}
    """
    weights = model.trainable_variables
    for pattern in patterns:
        matching = [weight for weight in weights if _matches(name_of(weight), pattern)]
        if not matching:
            names = dict.fromkeys(name_of(weight).partition("/")[0] for weight in weights)
            raise InputError(
                f"train.freeze: no weights are named {pattern!r}; the parts of this model are "
                f"{', '.join(names)}."
            )
        for weight in matching:
            weight.trainable = False
    if not model.trainable_variables:
        raise InputError(
            f"train.freeze {list(patterns)} leaves no weights to train. Freeze fewer parts."
        )


def name_of(weight: keras.Variable) -> str:
    """The name of a weight in its model, like encoder/layer_0/feed_forward/hidden/kernel."""
    return weight.path.partition("/")[2]


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")
