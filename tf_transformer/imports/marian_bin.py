"""Marian's binary files, with float32 matrices or with integers of intgemm.

Marian's decoder and the one of Firefox read them. All numbers are little-endian. A file has a
version, the number of items, for each item four numbers (see `_HEADER`), their names, their shapes,
a gap, and their data. Source: `src/common/binary.cpp` in Marian 1.12 and in browsermt's fork.
"""

import math
import pathlib
from typing import Any

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.imports.options import read_bytes

_VERSION = 1
_HEADER = np.dtype([(name, "<u8") for name in ("name", "type", "shape", "data")])  # sizes, but type
_FLOATS = {0x0404: "<f4", 0x0402: "<f2", 0x0101: "i1"}  # int8 is text: the options of the model
# Integers of intgemm, which no processor's layout changes: in browsermt's fork, and in Marian.
_INTEGERS = {0x4101: "i1", 0x4102: "<i2", 0x10001: "i1", 0x10002: "<i2"}


class _File:
    """The bytes of a file, read from the start."""

    def __init__(self, path: pathlib.Path):
        self.path, self.content, self.place = path, read_bytes(path), 0

    def bytes(self, count: int) -> bytes:
        """The next bytes; an `InputError` at the end of the file."""
        if count > len(self.content) - self.place:
            raise InputError(
                f"{self.path} is cut short, or no binary file of Marian: expected {count:,} bytes "
                f"from byte {self.place:,} on, got {len(self.content) - self.place:,}. Copy the "
                "file again."
            )
        self.place += count
        return self.content[self.place - count : self.place]

    def numbers(self, dtype: Any, count: int) -> np.ndarray:
        return np.frombuffer(self.bytes(count * np.dtype(dtype).itemsize), dtype)

    def number(self) -> int:
        return int(self.numbers("<u8", 1)[0])


def read_binary(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the arrays of a .bin file by name. Matrices of integers become float32."""
    file = _File(path)
    if (version := file.number()) != _VERSION:
        raise InputError(
            f"{path}: expected version {_VERSION} of Marian's binary files, got {version}. Take "
            "the .npz file of the model, or one that marian-conv wrote."
        )
    headers = file.numbers(_HEADER, file.number())
    names = [
        file.bytes(int(size)).rstrip(b"\0").decode("utf-8", "replace") for size in headers["name"]
    ]
    shapes = [tuple(map(int, file.numbers("<i4", int(size)))) for size in headers["shape"]]
    file.bytes(file.number())
    items = zip(names, shapes, headers, strict=True)
    return {
        name: _array(file, name, shape, int(header["type"]), int(header["data"]))
        for name, shape, header in items
    }


def _array(file: _File, name: str, shape: tuple[int, ...], kind: int, size: int) -> np.ndarray:
    """The array of an item, whose data have a number of bytes, with padding at the end."""
    dtype = np.dtype((_FLOATS | _INTEGERS).get(kind, "V0"))
    if not dtype.itemsize:
        raise InputError(
            f"{file.path}: {name} has numbers of the type {kind:#x}, which are packed for a kind "
            "of processor, or unknown. Expected float32, or int8 or int16 of intgemm. Take the "
            ".npz file of the model, or convert it with marian-conv --gemm-type intgemm8."
        )
    data, count = file.bytes(size), math.prod(shape)
    end = count * dtype.itemsize
    needed = end + 4 * (kind in _INTEGERS)
    if min(shape, default=1) < 0 or size < needed:
        raise InputError(
            f"{file.path}: {name} has the shape {shape}, which needs {needed:,} bytes, got "
            f"{size:,}. The file is damaged; copy it again."
        )
    values = np.frombuffer(data, dtype, count)
    if kind not in _INTEGERS:
        return values.reshape(shape)
    # The factor by which the numbers were multiplied follows them.
    values = values * (np.float32(1.0) / np.frombuffer(data, "<f4", 1, end))
    # Embeddings are stored by rows, all other matrices by columns.
    return values.reshape(shape) if "Wemb" in name else values.reshape(shape[::-1]).T
