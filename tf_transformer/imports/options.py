"""Values of the options of another program."""

import json
import math
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

import yaml

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


def number(options: Mapping[str, Any], key: str, file: object, least: int = 1) -> int:
    """Returns an option that is an integer.

    Args:
        options: values by key.
        key: the key of the option.
        file: the file of the options, for errors.
        least: the smallest value.

    Raises:
        InputError: for another value than an integer of at least `least`.
    """
    value = options.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{file}: {key} must be an integer of at least {least}, got {value!r}.")
    return value


def without_effect(
    options: Mapping[str, Any],
    read: Collection[str],
    file: pathlib.Path,
    off: Mapping[str, Collection[Any]] | None = None,
    idle: Collection[str] = (),
) -> list[str]:
    """The note about keys that the import does not read, and whose values change nothing.

    null, false, 0, and what is empty turn an option off. So a key with such a value needs no
    meaning here, in whatever version of the program it was added.

    Args:
        options: values by key.
        read: the keys with a meaning for the import.
        file: the file of the options.
        off: by key, the values that turn an option off, where they are others.
        idle: keys of options that have no effect on the models of the import.

    Returns:
        one note, or none if there is no such key.

    Raises:
        InputError: for a key that is not read and has another value.

    Example:
        >>> options, off = {"pruned_heads": {}, "num_groups": 1}, {"num_groups": (None, 1)}
        >>> without_effect(options, (), pathlib.Path("config.json"), off)
        ['config.json: not read, because their values change nothing: num_groups, pruned_heads']
    """
    off = off or {}
    unread = {key: value for key, value in options.items() if key not in read}
    for key, value in unread.items():
        if key not in idle and (value not in off[key] if key in off else value):
            raise InputError(
                f"{file} has the key {key!r} with the value {value!r:.60}, which the import does "
                "not understand. If it does not change translations, remove it."
            )
    if not unread:
        return []
    names = ", ".join(sorted(unread))
    return [f"{file.name}: not read, because their values change nothing: {names}"]


def read_json(path: pathlib.Path, kind: type = dict) -> Any:
    """The content of a JSON file.

    Args:
        path: the file.
        kind: dict for an object, list for a list.

    Raises:
        InputError: for a file that is missing, no JSON, or has another kind of content.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(content, kind):
        name = "object" if kind is dict else "list"
        raise InputError(f"{path} must hold a JSON {name}, got {type(content).__name__}.")
    return content


def read_yaml(content: bytes, path: pathlib.Path) -> dict[str, Any]:
    """The options in a text of YAML.

    Args:
        content: the text in UTF-8.
        path: the file of the text, for errors.

    Raises:
        InputError: for a text that is no YAML or holds no options.
    """
    try:
        options = yaml.safe_load(content.decode("utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML: {error}.") from error
    if not isinstance(options, dict):
        raise InputError(f"{path} must hold options, got {type(options).__name__}.")
    return options


def read_lines(path: pathlib.Path) -> list[str]:
    """The lines of a text file in UTF-8, divided at line feeds only.

    Raises:
        InputError: for a file that is missing or not UTF-8.
    """
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if lines[-1] == "":
        lines.pop()
    has_returns = all(line.endswith("\r") for line in lines)
    return [line[:-1] for line in lines] if has_returns else lines
