"""The options that name files and folders: which they are, and how their values become paths."""

import os
import re
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, get_args, get_type_hints

from tf_transformer.errors import InputError

LocalPath = Annotated[str, "path of this machine"]
"""The type of an option that names a file or a folder, or several with commas between them."""
PathOrAddress = Annotated[str, "path of this machine, or an address"]
"""The type of an option that is passed on to a library with file systems of its own."""

_ADDRESS = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+):/")  # also gs:/, which has lost a slash


def local_path(path: str, option: str) -> str:
    """A path, or several with commas between them, with the home folder in place of `~`.

    A file may have commas in its name. An address, such as gs://bucket/model, is an `InputError`.
    """
    parts = [path] if os.path.exists(path) else path.split(",")
    for part in parts:
        if address := _ADDRESS.match(part):
            raise InputError(
                f"{option} must be a path of this machine, got {part.strip()}. This program reads "
                f"and writes no {address[1]}:// addresses: give a local path, and copy the files "
                f"with a program of that storage. Write ./{part.strip()} for a local folder of "
                "this name."
            )
    return ",".join(map(with_home, parts))


def with_local_paths(value: Any, hint: Any, option: str) -> Any:
    """The value of an option, or a group of options, with `local_path` for each path in it.

    Dataclasses and tuples may be in the value. `hint` is its type, with annotations.
    """
    if hint == LocalPath:
        return local_path(value, option)
    if hint == PathOrAddress:
        return with_home(value)
    if isinstance(value, tuple) and get_args(hint):
        return tuple(with_local_paths(item, get_args(hint)[0], option) for item in value)
    if not is_dataclass(value):
        return value
    hints = get_type_hints(type(value), include_extras=True)
    old = {field.name: getattr(value, field.name) for field in fields(value)}
    new = {name: with_local_paths(old[name], hints[name], f"{option}.{name}") for name in old}
    return value if new == old else replace(value, **new)  # type: ignore[type-var]


def with_home(path: str) -> str:
    """The path with the home folder in place of a `~` at its start."""
    blanks, home, rest = re.fullmatch(r"(\s*)(~[^/]*|)(.*)", path, re.DOTALL).groups()  # type: ignore[union-attr]
    return blanks + os.path.expanduser(home) + rest
