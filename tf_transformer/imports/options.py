"""The options of another program, and the texts of its files."""

import json
import math
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

import yaml

from tf_transformer.errors import InputError

ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}


class Options(dict[str, Any]):
    """The options in a file, by key. Each method raises an `InputError` for another value.

    Example:
        >>> Options({"num_beams": 6}, pathlib.Path("config.json")).decimal("num_beams", 1)
        6.0
    """

    def __init__(self, values: Mapping[str, Any], file: pathlib.Path):
        super().__init__(values)
        self.file = file

    def must_be(self, key: str, expected: object) -> InputError:
        """The error for an option with another value."""
        return InputError(f"{self.file}: {key} must be {expected}, got {self.get(key)!r}.")

    def decimal(self, key: str, default: float, least: float = 0) -> float:
        """A finite number of at least `least`; the default if the option is absent or null."""
        value = self.get(key)
        if value is None:
            return float(default)
        if not isinstance(value, int | float) or not least <= value < math.inf:
            raise self.must_be(key, f"a number of at least {least:g}")
        return float(value)

    def number(self, key: str, least: int = 1) -> int:
        """An integer of at least `least`."""
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.must_be(key, f"an integer of at least {least}")
        return value

    def activation(self, key: str, default: str) -> str:
        """The value of `model.activation`."""
        name = self.get(key, default)
        if name not in ACTIVATIONS:
            raise self.must_be(key, f"one of {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[name]

    def dropout_rates(self) -> dict[str, float]:
        """The rates of dropout, as fields of `ModelConfig`."""
        return {
            "dropout_rate": self.decimal("dropout", 0.1),
            "attention_dropout_rate": self.decimal("attention_dropout", 0),
            "feed_forward_dropout_rate": self.decimal("activation_dropout", 0),
        }

    def without_effect(
        self, read: Collection[str], off: Mapping[str, Collection] = {}, idle: Collection[str] = ()
    ) -> list[str]:
        """The note about keys that the import does not read, and whose values change nothing.

        null, false, 0, and what is empty turn an option off. So a key with such a value needs no
        meaning here, in whatever version of the program it was added. `off` has, by key, the values
        that turn an option off, where they are others. Options of `idle` have no effect at all.

        Example:
            >>> options = Options({"pruned_heads": {}, "groups": 1}, pathlib.Path("config.json"))
            >>> options.without_effect((), {"groups": (None, 1)})
            ['config.json: not read, because their values change nothing: groups, pruned_heads']
        """
        unread = {key: value for key, value in self.items() if key not in read}
        for key, value in unread.items():
            if key not in idle and (value not in off[key] if key in off else value):
                raise InputError(
                    f"{self.file} has the key {key!r} with the value {value!r:.60}, which the "
                    "import does not understand. If it does not change translations, remove it."
                )
        if not unread:
            return []
        names = ", ".join(sorted(unread))
        return [f"{self.file.name}: not read, because their values change nothing: {names}"]


def read_json(path: pathlib.Path, kind: type = dict) -> Any:
    """The content of a JSON file, a dict or a list; an `InputError` for another content."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(content, kind):
        name = "object" if kind is dict else "list"
        raise InputError(f"{path} must hold a JSON {name}, got {type(content).__name__}.")
    return content


def read_yaml(content: bytes, path: pathlib.Path) -> Options:
    """The options in a text of YAML; an `InputError` that names `path` for another content."""
    try:
        options = yaml.safe_load(content.decode("utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML: {error}.") from error
    if not isinstance(options, dict):
        raise InputError(f"{path} must hold options, got {type(options).__name__}.")
    return Options(options, path)


def read_bytes(path: pathlib.Path) -> bytes:
    """The content of a file; an `InputError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def read_text(path: pathlib.Path, encoding: str = "utf-8") -> str:
    """The text of a file, with its line ends; an `InputError` if it is not UTF-8."""
    try:
        return read_bytes(path).decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def read_lines(path: pathlib.Path) -> list[str]:
    """The lines of a text file in UTF-8, divided at line feeds only."""
    lines = read_text(path).split("\n")
    if lines[-1] == "":
        lines.pop()
    has_returns = all(line.endswith("\r") for line in lines)
    return [line[:-1] for line in lines] if has_returns else lines
