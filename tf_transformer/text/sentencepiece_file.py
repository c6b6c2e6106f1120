"""The list of pieces in a SentencePiece model file, read and replaced.

A model file is a protocol buffer. The module of SentencePiece for protocol buffers needs a newer
protobuf than TensorFlow accepts, so this module reads and writes the few fields that it needs.
"""

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from tf_transformer.errors import InputError

_PIECES, _TRAINER = 1, 2  # fields of a model
_TEXT, _SCORE, _KIND = 1, 2, 3  # fields of a piece
_VOCABULARY_SIZE, _UNKNOWN_TEXT = 4, 44  # fields of the trainer
_SPECIAL_PIECES = 45, 46, 47, 48  # unknown, start, end, padding
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # kinds of fields


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


class SpecialPieces(NamedTuple):
    """The texts of the special pieces."""

    unknown: str
    start: str
    end: str
    padding: str


def read_pieces(model: bytes) -> list[Piece]:
    """The pieces of a serialized model, in the order of their ids.

    Raises:
        InputError: for bytes that are no SentencePiece model.
    """
    pieces = []
    for number, value in _fields(model):
        if number == _PIECES:
            fields = dict(_fields(_as_bytes(value)))
            (score,) = struct.unpack("<f", _as_bytes(fields.get(_SCORE, b"\0\0\0\0")))
            kind = fields.get(_KIND, Kind.NORMAL)
            if not isinstance(kind, int):
                raise InputError("the file is not a SentencePiece model.")
            pieces.append(
                Piece(_as_bytes(fields.get(_TEXT, b"")).decode("utf-8"), score, Kind(kind))
            )
    return pieces


def with_pieces(
    model: bytes, pieces: Iterable[Piece], vocabulary_size: int, special: SpecialPieces
) -> bytes:
    """Replaces the pieces of a model; its normalization stays as it is.

    Args:
        model: the serialized model.
        pieces: the new pieces, in the order of their ids.
        vocabulary_size: number of ids of the vocabulary, V. Text may also contain the pieces from
            V on; `Tokenizer` encodes them as unknown.
        special: texts of the special pieces. Unknown pieces are decoded as nothing.
    """
    kept = b"".join(_field(number, x) for number, x in _fields(model) if number != _PIECES)
    trainer = _field(_VOCABULARY_SIZE, vocabulary_size) + _field(_UNKNOWN_TEXT, b"")
    for number, text in zip(_SPECIAL_PIECES, special, strict=True):
        trainer += _field(number, text.encode())
    messages = (
        _field(_TEXT, piece.text.encode())
        + _tag(_SCORE, _FIXED_32)
        + struct.pack("<f", piece.score)
        + _field(_KIND, int(piece.kind))
        for piece in pieces
    )
    # Protocol buffers are merged by concatenation. The last value of a field counts.
    return b"".join(_field(_PIECES, message) for message in messages) + kept + _field(2, trainer)


def vocabulary_size(model: bytes) -> int:
    """The size of the vocabulary that a model was made for; 0 if the model does not say it."""
    size = 0
    for number, value in _fields(model):
        if number == _TRAINER:
            for name, x in _fields(_as_bytes(value)):
                if name == _VOCABULARY_SIZE:
                    size = int(x) if isinstance(x, int) else 0
    return size


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message: their numbers, and a number for a varint, else bytes."""
    at, end = 0, len(message)
    try:
        while at < end:
            tag, at = _varint(message, at)
            number, kind = tag >> 3, tag & 7
            if kind == _VARINT:
                value, at = _varint(message, at)
                yield number, value
                continue
            if kind == _BYTES:
                size, at = _varint(message, at)
            else:
                size = {_FIXED_64: 8, _FIXED_32: 4}[kind]
            if at + size > end:
                raise IndexError
            yield number, message[at : at + size]
            at += size
    except (IndexError, KeyError) as error:
        raise InputError("the file is not a SentencePiece model, or it is cut short.") from error


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
        return _tag(number, _VARINT) + _as_varint(value)
    return _tag(number, _BYTES) + _as_varint(len(value)) + value


def _tag(number: int, kind: int) -> bytes:
    return _as_varint(number << 3 | kind)


def _as_varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _as_bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise InputError("the file is not a SentencePiece model.")
    return value
