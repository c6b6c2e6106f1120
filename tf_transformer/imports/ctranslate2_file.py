"""CTranslate2's model.bin: variables by name. Source: `specs/model_spec.py` of CTranslate2 4.8."""

import pathlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.imports.weights import require_finite

NEWEST, OLDEST = 6, 2  # versions of the format
# By number, from version 4 on; before, the size of an item stands for its dtype.
_DTYPES = ("float32", "int8", "int16", "int32", "float16", ml_dtypes.bfloat16)
_DTYPES_BY_SIZE = {1: "int8", 2: "int16", 4: "float32"}
_SCALE = "_scale"


class ModelFile(NamedTuple):
    """The content of model.bin."""

    path: pathlib.Path
    version: int  # of the format
    kind: str  # the name of CTranslate2's structure, such as TransformerSpec
    arrays: dict[str, np.ndarray]  # float32; quantized arrays are multiplied with their scales


def read_model_file(path: pathlib.Path) -> ModelFile:
    """Reads model.bin; an `InputError` for another file, and for values that are not finite."""
    try:
        reader = _Reader(path.read_bytes())
        version = reader.number("I")
        if not OLDEST <= version <= NEWEST:
            raise InputError(
                f"{path} has version {version} of CTranslate2's format, expected {OLDEST} to "
                f"{NEWEST}. Convert the model again."
            )
        kind = reader.text()
        reader.number("I")  # the revision of the structure
        stored = dict(reader.variable(version) for _ in range(reader.number("I")))
        count = reader.number("I") if version > 2 else 0
        aliases = {reader.text(): reader.text() for _ in range(count)}
        if rest := len(reader.content) - reader.at:
            raise ValueError(f"it has {rest:,} more bytes than expected")
        arrays = dict(_in_float32(stored))
        require_finite(arrays, path)
        arrays |= {alias: arrays[name] for alias, name in aliases.items()}  # the same objects
        return ModelFile(path, version, kind, arrays)
    except (OSError, ValueError, IndexError, KeyError, struct.error) as error:
        raise InputError(
            f"{path} is missing, cut short or no model of CTranslate2: {error}."
        ) from error


class _Reader:
    """Reads the parts of a file one after the other. Numbers have the low byte first."""

    def __init__(self, content: bytes):
        self.content = content
        self.at = 0

    def number(self, kind: str) -> int:
        """An unsigned integer; `kind` is its letter in the module struct."""
        (value,) = struct.unpack_from("<" + kind, self.content, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def part(self, size: int) -> bytes:
        """The next bytes."""
        if self.at + size > len(self.content):
            raise ValueError(f"it ends after {len(self.content):,} bytes")
        self.at += size
        return self.content[self.at - size : self.at]

    def text(self) -> str:
        """A text with its length before it and a zero byte after it."""
        return self.part(self.number("H"))[:-1].decode("utf-8")

    def variable(self, version: int) -> tuple[str, np.ndarray]:
        """A variable with its name."""
        name = self.text()
        shape = [self.number("I") for _ in range(self.number("B"))]
        number, count = self.number("B"), self.number("I")
        dtype = np.dtype(_DTYPES[number] if version > 3 else _DTYPES_BY_SIZE[number])
        content = self.part(count if version > 3 else count * number)
        return name, np.frombuffer(content, dtype).reshape(shape)


def _in_float32(stored: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    for name, array in stored.items():
        if name.endswith(_SCALE) and name.removesuffix(_SCALE) in stored:
            continue
        value = array.astype(np.float32)
        if (scale := stored.get(name + _SCALE)) is not None:  # one number, or one for each row
            scale = scale.astype(np.float32)
            value = value / scale.reshape(scale.shape + (1,) * (value.ndim - scale.ndim))
        yield name, value
