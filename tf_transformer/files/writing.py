"""Writes complete files."""

import os
import pathlib
import secrets


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Writes a file and creates its folder; the file gets its name when it is complete."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")  # not another's
    try:
        with partial.open("xb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def one_line(text: str) -> str:
    """Replaces newlines, which a model can produce, so that the text is one line of a file."""
    return text.replace("\n", " ")
