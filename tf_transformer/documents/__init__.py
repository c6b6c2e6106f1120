"""Documents that are translated as a whole: formats by the ending of their file's name."""

import codecs
import importlib
import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from tf_transformer.documents.document import Document, Options, translated
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_whole
from tf_transformer.files.text_lines import TextError, checked


class Format(NamedTuple):
    """A format: its reader as module:function, and whether the reader takes text, not bytes."""

    reader: str
    is_text: bool = True


__all__ = ["FORMATS", "Document", "Options", "is_document", "read_content", "read_document"]
__all__ += ["register", "same_format", "translated"]

DEFAULT = Options()
LINES = ".txt"  # a format that commands read as a stream of lines
_PACKAGE = "tf_transformer.documents"
FORMATS: dict[str, Format] = {}
"""Formats by the ending of a file's name."""


def register(reader: str, endings: Sequence[str], is_text: bool = True) -> None:
    """Registers a format.

    Args:
        reader: "module:function" of a function (content, options) that returns a `Document`.
        endings: endings of the names of its files, in lower case.
        is_text: whether the content is a string, from a file in UTF-8; otherwise bytes.
    """
    FORMATS.update(dict.fromkeys(endings, Format(reader, is_text)))


def is_document(path: str | os.PathLike) -> bool:
    """Whether the name of a file has the ending of a format, except .txt."""
    return _ending(path) in FORMATS.keys() - {LINES}


def same_format(path: str | os.PathLike, other: str | os.PathLike) -> bool:
    """Whether the names of two files have endings of one format."""
    return FORMATS.get(_ending(path)) == FORMATS.get(_ending(other))


def read_document(path: str | os.PathLike, options: Options = DEFAULT) -> Document:
    """Reads a document, in the format that the ending of its name tells.

    Raises:
        InputError: for a file that cannot be read, or that is not in its format.
    """
    return read_content(read_whole(path), path, options)


def read_content(content: bytes, name: str | os.PathLike, options: Options = DEFAULT) -> Document:
    """Reads the content of a document, in the format that the ending of its name tells.

    Raises:
        InputError: for an unknown ending, or a content that is not in the format.
    """
    kind = FORMATS.get(_ending(name))
    if kind is None:
        raise InputError(f"{name} is no document: expected the ending {', '.join(FORMATS)}.")
    has_mark = kind.is_text and content.startswith(codecs.BOM_UTF8)
    given = _text(content, name) if kind.is_text else content
    module, _, function = kind.reader.partition(":")
    try:
        read = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name} needs the package {error.name}: pip install 'tf_transformer[documents]'."
        ) from error
    try:
        document = read(given, options)
    except InputError as error:
        raise InputError(f"{name} cannot be translated: {error}") from error
    mark = codecs.BOM_UTF8 * has_mark
    return document._replace(write=lambda items: mark + document.write(items))


def _text(content: bytes, path: str | os.PathLike) -> str:
    """The text of a file in UTF-8, without its byte-order mark."""
    try:
        return b"".join(checked([content], path)).decode()
    except TextError as error:
        raise InputError(str(error)) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8: it has the byte 0x{content[error.start]:02x}. Convert it, for "
            f"example: iconv -f WINDOWS-1252 -t UTF-8 {path} > {path}.utf8"
        ) from error


def _ending(path: str | os.PathLike) -> str:
    return pathlib.Path(path).suffix.lower()


register(f"{_PACKAGE}.plain_text:read_text", [LINES])
register(f"{_PACKAGE}.markdown:read_markdown", [".md", ".markdown"])
register(f"{_PACKAGE}.html_page:read_html", [".html", ".htm", ".xhtml"])
register(f"{_PACKAGE}.subtitles:read_srt", [".srt"])
register(f"{_PACKAGE}.gettext_po:read_po", [".po", ".pot"])
register(f"{_PACKAGE}.json_strings:read_json", [".json"])
register(f"{_PACKAGE}.xliff:read_xliff", [".xliff", ".xlf"], is_text=False)
register(f"{_PACKAGE}.tmx:read_tmx", [".tmx"], is_text=False)
register(f"{_PACKAGE}.word:read_docx", [".docx"], is_text=False)
