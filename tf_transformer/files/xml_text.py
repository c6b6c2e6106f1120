"""XML in UTF-8, made from the encoding that its byte-order mark or its first line names."""

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator

from tf_transformer.files.text_lines import HEAD, UNICODE_MARKS, TextError, is_utf8, warn

_WITHOUT_MARK = [("UTF-16LE", b"<\0"), ("UTF-16BE", b"\0<")]
_DECLARATION = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""", re.ASCII)


def as_utf8(pieces: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Converts the bytes of an XML file. Bytes in UTF-8 pass unchanged, with their errors.

    A warning on stderr names a file that seems to be UTF-8 although it names another encoding.

    Args:
        pieces: the bytes of the file, decompressed.
        name: name of the file, for errors.

    Raises:
        TextError: if the bytes are not in the encoding that the file names.
    """
    head, pieces = b"", iter(pieces)
    for piece in pieces:
        head += piece
        if len(head) >= HEAD:
            break
    pieces = itertools.chain([head], pieces)
    encoding = _encoding(head)
    if not encoding:
        yield from pieces
        return
    if is_utf8(head) and not head.isascii():
        warn(
            f"warning: {name} is read as {encoding}, the encoding that its first line names. It "
            "seems to be UTF-8; if letters come out wrong, correct the name."
        )
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise TextError(
            f"{name} is not {encoding}, the encoding that it names: {error}. Correct the name in "
            "its first line, or convert the file to UTF-8."
        ) from error


def _encoding(head: bytes) -> str:
    """Finds the encoding of an XML file by its first bytes. "" stands for UTF-8.

    A declaration that cannot be read in its own encoding is out of date, and does not count. Nor
    does the name of an unknown encoding.
    """
    for encoding, mark in UNICODE_MARKS + _WITHOUT_MARK:
        if head.startswith(mark):
            return encoding
    if declaration := _DECLARATION.match(head):
        encoding = declaration[1].decode()
        try:
            is_true = declaration[0].decode(encoding).startswith("<?xml")
        except (LookupError, UnicodeError):
            return ""
        if is_true and codecs.lookup(encoding).name not in ("utf-8", "ascii"):
            return encoding
    return ""
