"""Options of the benchmarks' commands: lists with commas between their parts, counts."""

from collections.abc import Collection

from tf_transformer.errors import InputError


def chosen(text: str, known: Collection[str]) -> list[str]:
    """Names with commas between them.

    Raises:
        InputError: for an unknown name.
    """
    names = text.split(",")
    for name in names:
        if name not in known:
            raise InputError(f"unknown name {name!r}; expected some of {', '.join(known)}.")
    return names


def numbers(text: str) -> list[int]:
    """Positive integers with commas between them.

    Raises:
        InputError: for any other text.
    """
    values = text.split(",")
    for value in values:
        if not value.isdecimal() or not int(value):
            raise InputError(f"expected positive numbers, like 1,32, got {text!r}.")
    return [int(value) for value in values]


def at_least_one(**values: int) -> None:
    """Refuses numbers below 1.

    Raises:
        InputError: for a number below 1; names the first.
    """
    for name, value in values.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}.")
