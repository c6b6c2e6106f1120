"""The keys of a training text, by which a run knows later which texts it has seen.

A run stores 16 bytes for each pair. They tell whether a text at hand is one of the training text;
no text can be read from them.
"""

import os
import pathlib
from collections.abc import Iterable, Iterator

import numpy as np

from tf_transformer.data.examples import Texts
from tf_transformer.data.text_keys import text_key
from tf_transformer.data.tokens import chunks
from tf_transformer.errors import InputError

_TYPE = np.dtype("<u8")
_PAIRS = 65_536  # in a block
_PAIR_BYTES = 2 * _TYPE.itemsize


def keys_of(pairs: Iterable[Texts]) -> Iterator[np.ndarray]:
    """Makes the keys of pairs, in blocks: uint64 (N, 2), of source and target.

    Example:
        >>> [block.shape for block in keys_of([("one", "eins"), ("two", "zwei")])]
        [(2, 2)]
    """
    for chunk in chunks(pairs, _PAIRS):
        yield np.array([list(map(text_key, pair)) for pair in chunk], _TYPE)


def stored_keys(path: str | os.PathLike) -> Iterator[np.ndarray]:
    """Reads blocks of keys, whose bytes a file has one after another.

    A file that ends within a pair is an `InputError`.
    """
    path = pathlib.Path(path)
    if path.stat().st_size % _PAIR_BYTES:
        raise InputError(
            f"{path} is cut short: expected {_PAIR_BYTES} bytes for each pair of the training "
            f"text, got {path.stat().st_size:,} bytes. Copy it again, or delete it; then the "
            "training text itself is read."
        )
    with path.open("rb") as file:
        while len(block := np.fromfile(file, _TYPE, 2 * _PAIRS)):
            yield block.reshape(-1, 2)
