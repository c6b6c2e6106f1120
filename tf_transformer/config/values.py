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
    can then be written to a file, and has a hash. Errors name options in their `group`, such as
    data.augment. The field `open_to` also takes texts outside its type, such as registered names.
    """
    prefix = f"{group}." if group else ""
    hints = get_type_hints(type(config))
    for option in fields(config):
        name, hint, value = option.name, hints[option.name], getattr(config, option.name)
        accepted = _as_type(value, str if name == open_to else hint)
        if accepted is None:
            raise InputError(f"{prefix}{name} must be {in_words(hint)}, got {value!r:.80}.")
        object.__setattr__(config, name, accepted)
    for option in fields(config):
        value = getattr(config, option.name)
        for holds, rule, reason in rules_of(option).checks if not isinstance(value, str) else ():
            if not holds(value):
                raise InputError(f"{prefix}{option.name} must {rule}, got {value}{reason}.")


def _as_type(value: Any, hint: Any) -> Any:
    """The value of a field with this type hint; None for a value of another type."""
    options = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        accepted = (_as_type(value, option) for option in options)
        return next((x for x in accepted if x is not None), None)
    if get_origin(hint) is Literal:
        return value if isinstance(value, str) and value in options else None
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(_as_type(item, options[0]) for item in value)
        return None if None in items else items
    if hint is str:  # that UTF-8 can encode
        is_text = isinstance(value, str) and not re.search("[\ud800-\udfff]", value)
        return value if is_text else None
    if isinstance(hint, type) and (hint is bool or is_dataclass(hint)):
        return value if isinstance(value, hint) else None
    if isinstance(value, bool):
        return None  # Python counts bool as an integer
    if isinstance(value, numbers.Integral):
        return int(value)
    is_finite = isinstance(value, numbers.Real) and math.isfinite(value)
    return float(value) if hint is float and is_finite else None


def in_words(hint: Any) -> str:
    """The values of a field's type, in words for an error message."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(in_words(kind) for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        if is_dataclass(get_args(hint)[0]):
            return "a list of corpora, like '[{source: a.en, target: a.de}, {path: b.tmx}]'"
        return "a list of text, like '[a, b]'"
    names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    return names.get(hint, "a group of options")


def replaced(config: Any, options: Mapping[str, Any], of: str) -> Any:
    """A copy of a dataclass with new values for some fields; None keeps a value."""
    names = [field.name for field in fields(config)]
    options = {name: value for name, value in options.items() if value is not None}
    if unknown := options.keys() - set(names):
        raise InputError(
            f"unknown option {min(unknown)!r} of {of}; expected some of {', '.join(names)}."
        )
    return replace(config, **options)
