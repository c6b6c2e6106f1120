"""Checks and changes of the values of a configuration."""

import math
import numbers
import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tf_transformer.config.option import rules_of
from tf_transformer.errors import InputError


def check(config: Any, group: str, open_to: str = "") -> None:
    """Checks the types of a dataclass's values, and the checks that its fields name.

    NumPy's numbers become Python's numbers, and a list of texts becomes a tuple. A configuration
    can then be written to a file, and has a hash.

    Args:
        config: the dataclass.
        group: the group of its options as a user types it, like data.augment; may be empty.
        open_to: a field that also takes texts outside its type, such as registered names.

    Raises:
        InputError: for the first field with a value of another type, else for the first field
            whose value breaks a check.
    """
    prefix = f"{group}." if group else ""
    hints = get_type_hints(type(config))
    for name in (each.name for each in fields(config)):
        value, hint = getattr(config, name), hints[name]
        accepted = _as_type(value, str if name == open_to else hint)
        if accepted is None:
            raise InputError(f"{prefix}{name} must be {in_words(hint)}, got {value!r:.80}.")
        object.__setattr__(config, name, accepted)
    for each in fields(config):
        value = getattr(config, each.name)
        for holds, rule, reason in rules_of(each).checks if not isinstance(value, str) else ():
            if not holds(value):
                raise InputError(f"{prefix}{each.name} must {rule}, got {value}{reason}.")


def _as_type(value: Any, hint: Any) -> Any:
    """The value of a field with this type hint; None for a value of another type."""
    options = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return next((x for x in (_as_type(value, each) for each in options) if x is not None), None)
    if get_origin(hint) is Literal:
        return value if isinstance(value, str) and value in options else None
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(_as_type(item, options[0]) for item in value)
        return None if None in items else items
    if hint is str:
        return value if _is_text(value) else None
    if isinstance(hint, type) and (hint is bool or is_dataclass(hint)):
        return value if isinstance(value, hint) else None
    if isinstance(value, bool):
        return None  # Python counts bool as an integer
    if isinstance(value, numbers.Integral):
        return int(value)
    is_finite = isinstance(value, numbers.Real) and math.isfinite(value)
    return float(value) if hint is float and is_finite else None


def _is_text(value: Any) -> bool:
    """Whether a value is text that UTF-8 can encode."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def in_words(hint: Any) -> str:
    """The values of a field's type, in words for an error message."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(in_words(each) for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        if is_dataclass(get_args(hint)[0]):
            return "a list of corpora, like '[{source: a.en, target: a.de}, {path: b.tmx}]'"
        return "a list of text, like '[a, b]'"
    names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    return names.get(hint, "a group of options")


def replaced(config: Any, options: Mapping[str, Any], of: str) -> Any:
    """A copy of a dataclass with new values for some fields.

    Args:
        config: the dataclass.
        options: new values by field; None keeps the value of the dataclass.
        of: the owner of the options, for the error message.

    Raises:
        InputError: for an unknown field, or a value out of range.
    """
    names = [field.name for field in fields(config)]
    options = {name: value for name, value in options.items() if value is not None}
    if unknown := options.keys() - set(names):
        raise InputError(
            f"unknown option {min(unknown)!r} of {of}; expected some of {', '.join(names)}."
        )
    return replace(config, **options)
