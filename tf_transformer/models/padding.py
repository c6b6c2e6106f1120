"""Checks rows of ids, and moves their padding to the end.

Inside a model, the tokens of a row come first and padding follows. So positions count tokens, and
the causal mask of a decoder hides padding from tokens.
"""

import keras
import numpy as np
from keras import KerasTensor, ops

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.embedding import AS_INTEGERS
from tf_transformer.layers.shape import flatten_positions, unflatten_positions
from tf_transformer.text.special_ids import EOS_ID, PAD_ID


def tokens_first(ids: KerasTensor, vocabulary_size: int) -> tuple[KerasTensor, KerasTensor]:
    """Moves the padding of each row of ids (B, T) to the end, where it may stand already.

    The results are the moved ids, int (B, T), and the new place of each position, int32 (B, T).

    Raises:
        InputError: if a value is not an id; see `require_ids`. A traced graph does not know its
            values: there, an id below 0 becomes V, which the embedding refuses.

    Example:
        >>> ids, places = tokens_first(np.array([[0, 0, 7, 8, 2]]), 11)
        >>> np.asarray(ids).tolist(), np.asarray(places).tolist()
        ([[7, 8, 2, 0, 0]], [[3, 4, 0, 1, 2]])
    """
    require_ids(ids, vocabulary_size)
    real = ops.cast(ops.not_equal(ids, PAD_ID), "int32")
    of_padding = ops.sum(real, axis=1, keepdims=True) + ops.cumsum(1 - real, axis=1) - 1
    places = ops.where(ops.equal(real, 1), ops.cumsum(real, axis=1) - 1, of_padding)
    moved = ops.take_along_axis(ids, ops.argsort(places, axis=1), axis=1)
    return ops.where(moved < 0, ops.cast(vocabulary_size, moved.dtype), moved), places


def as_read(source: KerasTensor, config: ModelConfig) -> KerasTensor:
    """The source ids (B, S) that an encoder reads.

    Without `source_end`, end tokens become padding. The end token of an empty text stays.
    """
    if config.imported.source_end:
        return source
    is_end = ops.logical_and(ops.equal(source, EOS_ID), ops.arange(ops.shape(source)[1]) > 0)
    return ops.where(is_end, ops.cast(PAD_ID, source.dtype), source)


def put_back(x: KerasTensor, places: KerasTensor) -> KerasTensor:
    """Moves vectors (B, T, D) back from the places (B, T) that `tokens_first` returned."""
    batch, length = ops.shape(places)
    rows = places + length * ops.arange(batch, dtype="int32")[:, None]
    moved = ops.take(flatten_positions(x), ops.reshape(rows, (-1,)), axis=0)
    return unflatten_positions(moved, like=x)


def require_tokens_first(ids: KerasTensor, vocabulary_size: int) -> None:
    """Raises an `InputError` if ids (B, T) are not valid, or if padding stands before a token.

    A traced graph does not know its values. There, only dtype and axes are checked.
    """
    require_ids(ids, vocabulary_size)
    values = _known(ids)
    if values is not None and (np.diff((values != PAD_ID).astype(int), axis=1) > 0).any():
        raise InputError(
            "expected rows of ids with padding at the end, got padding (id 0) before a token. Pad "
            "with padding='post', or call the model itself, which takes padding at any place."
        )


def require_ids(ids: KerasTensor, vocabulary_size: int) -> None:
    """Raises an `InputError` if ids are not an int tensor (B, T) with values in [0, V)."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if "int" not in dtype or len(ids.shape) != 2:
        raise InputError(
            f"expected ids as a tensor of integers with two axes, (batch, length), got {dtype} of "
            f"shape {tuple(ids.shape)}. {AS_INTEGERS}"
        )
    values = _known(ids)
    if values is None or not values.size:
        return
    if not 0 <= values.min() <= values.max() < vocabulary_size:
        raise InputError(
            f"expected ids from 0 to {vocabulary_size - 1}, because the vocabulary has "
            f"{vocabulary_size} ids, got ids from {values.min()} to {values.max()}. Encode the "
            "text with the model's own tokenizer."
        )


def _known(ids: KerasTensor) -> np.ndarray | None:
    """Returns the values of a tensor, or None while a graph is traced."""
    try:
        return ops.convert_to_numpy(ids)
    except (NotImplementedError, TypeError, ValueError, RuntimeError, AttributeError):
        return None  # each backend has its own error
