"""The fields of a configuration, and what `train.init_from` means for each.

A training may start with the weights of another run, its origin. Each field says what the new run
does with the option of the origin:

- `same`: it has the origin's value, because the weights depend on it. Another value is an error.
- `inherited`: it has the origin's value unless the option is given.
- `free`: it does not depend on the origin.

`training/inheritance.py` applies these rules.
"""

from dataclasses import Field, field
from typing import Literal, TypeVar

FromOrigin = Literal["same", "inherited", "free"]
T = TypeVar("T")
_KEY = "from_origin"


def same(default: T) -> T:
    """A field with a default, which must have the value of the origin."""
    return field(default=default, metadata={_KEY: "same"})


def inherited(default: T) -> T:
    """A field with a default, which has the value of the origin unless it is given."""
    return field(default=default, metadata={_KEY: "inherited"})


def free(default: T) -> T:
    """A field with a default, which does not depend on the origin."""
    return field(default=default, metadata={_KEY: "free"})


def rule_of(option: Field) -> FromOrigin:
    """What a field says. An option of a task outside this package may say nothing: `inherited`.

    Example:
        >>> from dataclasses import fields
        >>> from tf_transformer.config import ModelConfig
        >>> {option.name: rule_of(option) for option in fields(ModelConfig)}["d_model"]
        'same'
    """
    return option.metadata.get(_KEY, "inherited")
