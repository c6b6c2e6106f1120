"""Weights that a training run leaves as they are."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import keras

from tf_transformer.errors import InputError
from tf_transformer.models.names import by_name


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Makes the weights with matching names not trainable.

    Args:
        model: the built model.
        patterns: names of parts; `*` stands for any text. "encoder" is the whole encoder,
            "*/layer_0" the first layer of each stack.

    Example:
        >>> from tf_transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> freeze(model, ["encoder", "*_embedding"])
        >>> {name.partition("/")[0] for name, weight in by_name(model).items() if weight.trainable}
        {'decoder'}
    """
    weights = {name: weight for name, weight in by_name(model).items() if weight.trainable}
    for pattern in patterns:
        matching = [weight for name, weight in weights.items() if _matches(name, pattern)]
        if not matching:
            names = dict.fromkeys(name.partition("/")[0] for name in weights)
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


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")
