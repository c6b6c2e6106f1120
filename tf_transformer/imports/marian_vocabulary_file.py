"""Marian's vocab.yml: tokens and their ids.

A general reader of YAML loses entries of these files: it takes U+0085 and U+2028 for ends of lines.
Marian writes one token a line, so this reader needs a small part of YAML only.
"""

import pathlib
import re

from tf_transformer.errors import InputError
from tf_transformer.imports.options import read_text

_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_CHARACTERS = {
    **{"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"},
    **{"e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"},
}


def read_vocabulary_file(path: pathlib.Path) -> dict[str, int]:
    """Reads ids by token from lines like `"▁house": 17`; an `InputError` for other lines."""
    lines = read_text(path, "utf-8-sig").split("\n")
    ids: dict[str, int] = {}
    long = None  # a long token stands on a line of its own, after a question mark
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if not line or line == "---" or (line.startswith("#") and not _value(line)):
            continue
        if line.startswith("? ") and not _value(line):
            long = line[2:]
            continue
        token, value = (long, line) if long is not None else (line, line)
        found = _value(value)
        if found is None:
            raise InputError(
                f"{path}, line {number}: expected a token and its id, like house: 17, got "
                f"{line[:60]!r}."
            )
        token = _unquoted(token if long is not None else found[0])
        long = None
        if token in ids:
            raise InputError(f"{path}, line {number}: {token!r} already has the id {ids[token]}.")
        ids[token] = found[1]
    return ids


def _value(line: str) -> tuple[str, int] | None:
    """What stands before the last colon of a line, and the number after it."""
    text, colon, number = line.rpartition(":")
    number = number.strip(" ")
    return (text, int(number)) if colon and number.isascii() and number.isdecimal() else None


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(_character, text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text.strip(" ")


def _character(escape: re.Match) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _CHARACTERS.get(code, code)
