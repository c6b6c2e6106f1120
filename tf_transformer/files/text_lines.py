"""Lines of UTF-8 text from the bytes of a file or a pipe, plain or compressed.

The format of a text is recognized by its content, never by its name. This module imports nothing
from the project, because programs run it by its path.
"""

import bz2
import codecs
import functools
import itertools
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

STDIN = "stdin"  # the name of standard input in messages
CHUNK = 2**13  # bytes; limits the memory of decompression
HEAD = 4096  # bytes that show the encoding
_LONGEST_START = 10  # bytes that show the compression


class TextError(ValueError):
    """The bytes are not text in UTF-8. The message says what they are, and what to do."""


def lines_of(chunks: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Makes lines from the chunks of a text; see `plain` and `without_ends`."""
    return without_ends(itertools.chain.from_iterable(groups(plain(chunks, name))), name)


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    """Reads the bytes of an open file as they arrive."""
    return iter(lambda: file.read1(CHUNK), b"")  # type: ignore[attr-defined]


def plain(chunks: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Decompresses a text and removes the byte-order mark at its start. Errors have its name.

    Yields a piece for each chunk, before the next chunk is read. A piece may be empty. Broken
    files, and texts with another encoding or format, are a `TextError`.
    """
    yield from checked(decompressed(chunks, name), name)


def checked(pieces: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Checks the start of a text that is not compressed, and removes its byte-order mark."""
    head, pieces = b"", iter(pieces)
    for piece in pieces:
        head += piece
        if b"\n" in head or len(head) >= HEAD:
            break
        yield b""
    if error := _error(head[:HEAD], name):
        raise TextError(error)
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def groups(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    r"""Makes a list of the lines that each piece of a text completes. Only "\n" ends a line.

    `str.splitlines` would also split at U+0085, U+2028 and others, and misalign the next lines.
    """
    unfinished = bytearray()
    for piece in pieces:
        first, *others = piece.split(b"\n")
        unfinished += first
        if others:
            yield [bytes(unfinished), *others[:-1]]
            unfinished = bytearray(others[-1])
        else:
            yield []
    if unfinished:
        yield [bytes(unfinished)]


def without_ends(lines: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Removes the newline of each line, and one carriage return before it.

    Old Macs ended lines with carriage returns. A single line with carriage returns gives a warning.
    """
    count, text = 0, b""
    for line in lines:
        count, text = count + 1, line.removesuffix(b"\n").removesuffix(b"\r")
        yield text
    if count == 1 and (returns := text.count(b"\r")):
        warn(
            f"warning: {name} is one line with {returns:,} carriage returns inside. Only newlines "
            "end lines. If carriage returns end them, convert the text: tr '\\r' '\\n'."
        )


@functools.cache
def warn(sentence: str) -> None:
    """Prints a warning on stderr, once in a process, because a text may be read several times."""
    print(sentence, file=sys.stderr)


def _zstandard() -> Any:
    """Makes a decompressor of the optional package. Python has its own from version 3.14 on."""
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


# Formats of compressed streams, with patterns of the first bytes. A file holds one or more streams.
_COMPRESSIONS: dict[str, tuple[bytes, Callable[[], Any]]] = {
    "gzip": (rb"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    "bzip2": (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", bz2.BZ2Decompressor),
    "xz": (rb"\xfd7zXZ\x00", lzma.LZMADecompressor),
    "Zstandard": (rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", _zstandard),
}
# Patterns of the first bytes of other formats. Each pattern has bytes that no text has.
_FORMATS = {
    "a zip archive (or a document that is one)": rb"PK(\x03\x04|\x05\x06)",
    "a 7z archive": rb"7z\xbc\xaf\x27\x1c",
    "a rar archive": rb"Rar!\x1a\x07",
    "a tar archive": rb"[\x00-\xff]{257}ustar",
    "an lz4 file": rb"\x04\x22\x4d\x18",
    "a file of compress (.Z)": rb"\x1f\x9d",
    "a PDF document": rb"%PDF-\d\.\d\s+%[\x80-\xff]",
} | {f"compressed twice, in the end by {form}": start for form, (start, _) in _COMPRESSIONS.items()}
UNICODE_MARKS = [  # UTF-32 comes first, because its mark starts with the mark of UTF-16
    *(("UTF-32", codecs.BOM_UTF32_LE), ("UTF-32", codecs.BOM_UTF32_BE)),
    *(("UTF-16", codecs.BOM_UTF16_LE), ("UTF-16", codecs.BOM_UTF16_BE)),
]
_CONTROLS = bytes({*range(32), 0x7F} - {*b"\t\n\v\f\r\b\x1b"})


def decompressed(chunks: Iterable[bytes], name: object) -> Iterator[bytes]:
    """Decompresses a text if it is compressed. Yields a piece for each chunk."""
    head, source = b"", iter(chunks)
    for chunk in source:
        head += chunk
        if b"\n" in head or len(head) >= _LONGEST_START:
            break
        yield b""
    form = next((form for form, (start, _) in _COMPRESSIONS.items() if re.match(start, head)), "")
    if not form:
        yield head
        yield from source
        return
    _, new_decompressor = _COMPRESSIONS[form]
    try:
        decompressor = new_decompressor()
        for chunk in itertools.chain([head], source):
            parts = []
            while chunk:
                if decompressor.eof and (chunk := chunk.lstrip(b"\0")):  # padding between streams
                    decompressor = new_decompressor()
                parts.append(decompressor.decompress(chunk) if chunk else b"")
                chunk = decompressor.unused_data if chunk else b""
            yield b"".join(parts)
    except ModuleNotFoundError as error:
        raise TextError(
            f"{name} is compressed by Zstandard. Install its package: pip install "
            "'tf_transformer[zstandard]'; or decompress the file: zstd -d."
        ) from error
    except _decompression_errors() as error:
        raise TextError(f"{name} is not a whole {form} file: {error}.") from error
    if not decompressor.eof:
        raise TextError(f"{name} is not a whole {form} file: its end is missing.")


def _decompression_errors() -> tuple[type[Exception], ...]:
    zstandard = sys.modules.get("zstandard")
    return (zlib.error, lzma.LZMAError, OSError, *([zstandard.ZstdError] if zstandard else []))


def _error(head: bytes, name: object) -> str:
    """Says why bytes are not the start of a text in UTF-8. "" means that they are."""
    if head.startswith(codecs.BOM_UTF8):
        return ""
    for encoding, mark in UNICODE_MARKS:
        if head.startswith(mark):
            return _other_encoding(name, encoding)
    for other, start in _FORMATS.items():
        if re.match(start, head, re.DOTALL):
            return f"{name} is {other}; expected text in UTF-8. Extract the text first."
    even, odd = head[::2], head[1::2]
    for encoding, low, high in (("UTF-16LE", even, odd), ("UTF-16BE", odd, even)):
        if len(head) > 3 and 0 in high and 0 not in low and _is_utf16(head, encoding, high):
            return _other_encoding(name, encoding)
    many = max(8, len(head) // 20)  # a text may have fewer
    is_binary = head.count(0) >= many or (_controls(head) >= many and not is_utf8(head))
    return f"{name} is binary data; expected text in UTF-8." if is_binary else ""


def _is_utf16(head: bytes, encoding: str, high: bytes) -> bool:
    """Whether bytes without a byte-order mark are UTF-16.

    Most high bytes are control characters, or all characters are printable and it is not UTF-8.
    """
    if 2 * _controls(high) > len(high):
        return True
    text = head[: len(head) // 2 * 2].decode(encoding, "replace").removesuffix("\ufffd")
    return not is_utf8(head) and all(c.isprintable() or c in "\t\r\n\u3000" for c in text)


def _controls(head: bytes) -> int:
    """Counts the bytes that are control characters and never stand in texts."""
    return len(head) - len(head.translate(None, _CONTROLS))


def is_utf8(head: bytes) -> bool:
    """Whether bytes are UTF-8. The last character may be incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _other_encoding(name: object, encoding: str) -> str:
    files = "" if name == STDIN else f" {name} > {name}.utf8"
    return (
        f"{name} is {encoding[:6]}; expected UTF-8. Convert it, for example: "
        f"iconv -f {encoding} -t UTF-8{files}"
    )
