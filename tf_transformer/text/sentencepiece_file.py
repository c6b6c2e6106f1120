"""The list of pieces in a SentencePiece model file, read and replaced.

A model file is a protocol buffer. The module of SentencePiece for protocol buffers needs a newer
protobuf than TensorFlow accepts, so this module reads and writes the few fields that it needs.
"""

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of a model
_TEXT, _SCORE, _KIND = 1, 2, 3  # fields of a piece
_VOCABULARY_SIZE, _UNKNOWN_TEXT = 4, 44  # fields of the trainer
_SPECIAL_PIECES = 45, 46, 47, 48  # unknown, start, end, padding
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # kinds of fields
_NO_MODEL = "the file is not a SentencePiece model."
UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4  # values of `Options.segmentation`


class ModelFileError(ValueError):
    """Bytes that are not a SentencePiece model."""


class Kind(IntEnum):
    """The kinds of pieces."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3  # never found in text, decoded as nothing
    USER_DEFINED = 4
    UNUSED = 5  # never found in text, decoded like a normal piece
    BYTE = 6


class Piece(NamedTuple):
    """A piece of a vocabulary."""

    text: str
    score: float = 0.0
    kind: Kind = Kind.NORMAL


class Options(NamedTuple):
    """Options of a model, with the values of a model that does not name them."""

    segmentation: int = UNIGRAM  # or BPE, WORD, CHAR
    vocabulary_size: int = 0  # 0: unknown
    ends_words_in_spaces: int = 0  # a space belongs to the word before it; else to the next word
    adds_space: int = 1  # a text gets a space at its start, or at its end
    removes_spaces: int = 1  # at the ends of a text; several spaces in it become one
    escapes_spaces: int = 1  # U+2581 stands for a space


_OPTIONS = {  # by the fields of a model and of its trainer or normalizer
    **{(_TRAINER, 3): "segmentation", (_TRAINER, _VOCABULARY_SIZE): "vocabulary_size"},
    **{(_TRAINER, 24): "ends_words_in_spaces", (_NORMALIZER, 3): "adds_space"},
    **{(_NORMALIZER, 4): "removes_spaces", (_NORMALIZER, 5): "escapes_spaces"},
}


class SpecialPieces(NamedTuple):
    """The texts of the special pieces."""

    unknown: str
    start: str
    end: str
    padding: str


def read_pieces(model: bytes) -> list[Piece]:
    """The pieces of a serialized model, in the order of their ids; raises `ModelFileError`."""
    pieces = []
    try:
        for message in (value for number, value in _fields(model) if number == _PIECES):
            fields: dict[int, Any] = {_TEXT: b"", _SCORE: bytes(4), _KIND: Kind.NORMAL}
            fields |= dict(_fields(message))
            (score,) = struct.unpack("<f", fields[_SCORE])
            if fields[_KIND] not in list(Kind):
                raise ModelFileError(_NO_MODEL)
            pieces.append(Piece(fields[_TEXT].decode(), score, Kind(fields[_KIND])))
    except (struct.error, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise ModelFileError(_NO_MODEL) from error
    return pieces


def serialized(piece: Piece) -> bytes:
    """The message of a piece."""
    score = _as_varint(_SCORE << 3 | _FIXED_32) + struct.pack("<f", piece.score)
    return _field(_TEXT, piece.text.encode()) + score + _field(_KIND, int(piece.kind))


def with_pieces(
    model: bytes, pieces: Iterable[Piece], vocabulary_size: int, special: SpecialPieces
) -> bytes:
    """Replaces the pieces of a model; its normalization stays as it is.

    Text may also contain the pieces from `vocabulary_size` on; `Tokenizer` encodes them as unknown.
    Unknown pieces are decoded as nothing.
    """
    kept = b"".join(_field(number, x) for number, x in _fields(model) if number != _PIECES)
    trainer = _field(_VOCABULARY_SIZE, vocabulary_size) + _field(_UNKNOWN_TEXT, b"")
    for number, text in zip(_SPECIAL_PIECES, special, strict=True):
        trainer += _field(number, text.encode())
    new = b"".join(_field(_PIECES, serialized(piece)) for piece in pieces)
    # Protocol buffers are merged by concatenation. The last value of a field counts.
    return new + kept + _field(_TRAINER, trainer)


def read_options(model: bytes) -> Options:
    """The options of a serialized model; raises `ModelFileError`."""
    values = {}
    for number, message in _fields(model):
        if number in (_TRAINER, _NORMALIZER):
            for option, value in _fields(message):
                if isinstance(value, int) and (number, option) in _OPTIONS:
                    values[_OPTIONS[number, option]] = value  # the last value counts
    return Options(**values)


def _fields(message: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a message: their numbers, and a number for a varint, else bytes."""
    if isinstance(message, int):
        raise ModelFileError(_NO_MODEL)
    at, end = 0, len(message)
    try:
        while at < end:
            tag, at = _varint(message, at)
            number, kind = tag >> 3, tag & 7
            if kind in (_VARINT, _BYTES):
                value, at = _varint(message, at)
            if kind == _VARINT:
                yield number, value
                continue
            size = value if kind == _BYTES else {_FIXED_64: 8, _FIXED_32: 4}[kind]
            if at + size > end:
                raise IndexError
            yield number, message[at : at + size]
            at += size
    except (IndexError, KeyError) as error:
        raise ModelFileError(
            "the file is not a SentencePiece model, or it is cut short."
        ) from error


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """An integer in groups of 7 bits, lowest first, and the place after it."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _as_varint(number << 3 | _VARINT) + _as_varint(value)
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
