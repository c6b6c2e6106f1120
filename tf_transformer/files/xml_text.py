"""XML in UTF-8, made from the encoding that its byte-order mark or its first line names."""

import codecs
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from tf_transformer.files.text_lines import HEAD, UNICODE_MARKS, TextError, warn

_WITHOUT_MARK = [("UTF-16LE", b"<\0"), ("UTF-16BE", b"\0<")]
_DECLARATION = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""", re.ASCII)
# Files that name ISO-8859-1 hold the punctuation of Windows where ISO-8859-1 has controls. So they
# are read as browsers read them. Bytes without a character of Windows stay controls.
_WINDOWS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))


def as_utf8(pieces: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Converts the bytes of an XML file. Bytes in UTF-8 pass unchanged, with their errors.

    At the end, a warning on stderr names a file that seems to be UTF-8 although it names another
    encoding. ISO-8859-1 stands for windows-1252, as in browsers.
    """
    head, pieces = b"", iter(pieces)
    while len(head) < HEAD and (piece := next(pieces, None)) is not None:
        head += piece
    pieces = itertools.chain([head], pieces)
    encoding = _encoding(head)
    if not encoding:
        yield from pieces
        return
    decode, decode_utf8 = _decoder(encoding), codecs.getincrementaldecoder("utf-8")().decode
    is_ascii = is_utf8 = True  # so far
    try:
        for piece in pieces:
            is_ascii = is_ascii and piece.isascii()
            try:
                is_utf8 = is_utf8 and decode_utf8(piece) is not None
            except UnicodeDecodeError:
                is_utf8 = False
            yield decode(piece, False).encode()
        yield decode(b"", True).encode()
    except UnicodeError as error:
        raise TextError(
            f"{name} is not {encoding}, the encoding that it names: {error}. Correct the name in "
            "its first line, or convert the file to UTF-8."
        ) from error
    if is_utf8 and not is_ascii:
        warn(
            f"warning: {name} is read as {encoding}, the encoding that its first line names. It "
            "seems to be UTF-8; if letters come out wrong, correct the name."
        )


def _decoder(encoding: str) -> Callable[[bytes, bool], str]:
    """Makes a function that decodes a piece, and takes whether the piece is the last one."""
    if codecs.lookup(encoding).name == "iso8859-1":
        return lambda piece, _: codecs.charmap_decode(piece, "strict", _WINDOWS)[0]
    return codecs.getincrementaldecoder(encoding)().decode


def _encoding(head: bytes) -> str:
    """Finds the encoding of an XML file by its first bytes. "" stands for UTF-8.

    A declaration that is not true, or that names an unknown encoding, does not count.
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
