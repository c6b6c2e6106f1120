"""Rows of ids as callers of a model give them: padding on any side, or ids that are no ids.

Inside of a model, rows begin with their tokens and padding follows: so positions count tokens, and
the causal mask of a decoder hides padding from them.
"""

import keras
import numpy as np
from keras import KerasTensor, ops

from tf_transformer.errors import InputError
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions
from tf_transformer.text.special_ids import PAD_ID


def tokens_first(ids: KerasTensor, vocabulary_size: int) -> tuple[KerasTensor, KerasTensor]:
    """Rows with their padding at the end.

    Args:
        ids: int tensor (B, T), padding anywhere.
        vocabulary_size: V.

    Returns:
        int tensor (B, T), and for each position of `ids` its place in this row, int32 (B, T). Rows
        that begin with their tokens are returned as they are.

    Raises:
        InputError: for values that are no ids, as `require_ids`. In a graph, whose values are not
            known, an id below 0 becomes V, which the embedding refuses.

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


def put_back(x: KerasTensor, places: KerasTensor) -> KerasTensor:
    """Vectors (B, T, D) for rows of `tokens_first`, in the places of the rows given to it."""
    batch, length = ops.shape(places)
    rows = places + length * ops.arange(batch, dtype="int32")[:, None]
    return unflatten_positions(
        ops.take(flatten_positions(x), ops.reshape(rows, (-1,)), axis=0), like=x
    )


def require_tokens_first(ids: KerasTensor, vocabulary_size: int) -> None:
    """Raises an `InputError` for a row with padding before a token, and as `require_ids`.

    In a graph, whose values are not known, it checks type and axes alone.
    """
    require_ids(ids, vocabulary_size)
    values = _known(ids)
    if values is not None and (np.diff((values != PAD_ID).astype(int), axis=1) > 0).any():
        raise InputError(
            "expected rows of ids with padding at the end, got padding (id 0) before a token. Pad "
            "with padding='post', or call the model itself, which takes padding anywhere."
        )


def require_ids(ids: KerasTensor, vocabulary_size: int) -> None:
    """Raises an `InputError` for a tensor that is no int tensor (B, T) with values in [0, V)."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if "int" not in dtype or len(ids.shape) != 2:
        raise InputError(
            f"expected ids as a tensor of integers with two axes, (batch, length), got {dtype} of "
            f"shape {tuple(ids.shape)}. keras.Input needs dtype='int32'."
        )
    values = _known(ids)
    if (
        values is not None
        and values.size
        and not 0 <= values.min() <= values.max() < vocabulary_size
    ):
        raise InputError(
            f"expected ids from 0 to {vocabulary_size - 1}, the size of the vocabulary less 1, got "
            f"ids from {values.min()} to {values.max()}."
        )


def _known(ids: KerasTensor) -> np.ndarray | None:
    """The values of a tensor, or None while a graph is traced."""
    try:
        return ops.convert_to_numpy(ids)
    except (NotImplementedError, TypeError, ValueError, RuntimeError, AttributeError):
        return None  # each backend has its own error
