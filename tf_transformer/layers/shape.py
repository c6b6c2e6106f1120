"""Shapes of tensors, and sequences as the rows of one matrix, for one product over all positions.

Keras multiplies a (B, T, D) tensor with a matrix by a general tensor product. This product computes
shapes at run time, and TensorFlow cannot fuse bias and activation into it.
"""

from typing import Any

from keras import KerasTensor, ops

Shape = tuple[Any, ...]
"""Integers; None stands for a size that only a running graph knows."""


def flatten_positions(x: KerasTensor) -> KerasTensor:
    """(..., D) to (R, D), one row for each position."""
    return ops.reshape(x, (-1, x.shape[-1]))


def unflatten_positions(rows: KerasTensor, like: KerasTensor) -> KerasTensor:
    """(R, E) back to (..., E), with the leading axes of `like` (..., D)."""
    sizes = [size_of(like, axis) for axis in range(1, len(like.shape) - 1)]
    return ops.reshape(rows, (-1, *sizes, rows.shape[-1]))


def size_of(x: KerasTensor, axis: int) -> int | KerasTensor:
    """The size of an axis: an int, or an int32 scalar that only a running graph knows."""
    size = x.shape[axis]
    return ops.shape(x)[axis] if size is None else size
