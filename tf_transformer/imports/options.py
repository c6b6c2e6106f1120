"""Values of the options of another program."""

import math
from collections.abc import Mapping
from typing import Any

from tf_transformer.errors import InputError


def decimal(
    options: Mapping[str, Any], key: str, default: float, least: float, file: object
) -> float:
    """Returns an option that is a number; the default if it is absent or null.

    Args:
        options: values by key.
        key: the key of the option.
        default: the value of an absent option.
        least: the smallest value.
        file: the file of the options, for errors.

    Raises:
        InputError: for another value than a finite number of at least `least`.

    Example:
        >>> decimal({"num_beams": 6}, "num_beams", 1, 1, "config.json")
        6.0
    """
    value = options.get(key)
    if value is None:
        return float(default)
    if not isinstance(value, int | float) or not least <= value < math.inf:
        raise InputError(f"{file}: {key} must be a number of at least {least:g}, got {value!r}.")
    return float(value)
