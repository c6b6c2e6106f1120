"""Writes files as a whole."""

import os
import pathlib
import secrets
from collections.abc import Iterable, Sequence


def write_whole(path: str | os.PathLike, content: str | bytes | Iterable[bytes]) -> None:
    """Writes a file, and creates its folder. The file gets its name when it is complete.

    Content in parts is never in memory as a whole.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")  # a unique name
    try:
        with partial.open("xb") as file:
            if isinstance(content, str):
                content = content.encode("utf-8")
            file.writelines([content] if isinstance(content, bytes) else content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def one_line(text: str) -> str:
    """Replaces newlines by spaces, because a model can produce newlines."""
    return text.replace("\n", " ")


def as_lines(texts: Sequence[str]) -> bytes:
    """One line per text; a mark and line ends protect the first and last characters of texts."""
    return "".join(["\ufeff", *(text + "\r\n" for text in texts)]).encode("utf-8")
