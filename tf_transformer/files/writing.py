"""Writes files as a whole."""

import os
import pathlib
import secrets


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Writes a file, and creates its folder. The file gets its name when it is complete."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")  # a unique name
    try:
        with partial.open("xb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def one_line(text: str) -> str:
    """Replaces newlines by spaces, because a model can produce newlines."""
    return text.replace("\n", " ")
