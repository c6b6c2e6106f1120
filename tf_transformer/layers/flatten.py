"""Sequences as rows of one matrix, so that a product over all positions is one plain product.

Keras multiplies a (B, T, D) tensor with a matrix through a general tensor product, which computes
shapes at run time and prevents TensorFlow from fusing bias and activation into the product.
"""

from keras import KerasTensor, ops


def flatten_positions(x: KerasTensor) -> KerasTensor:
    """(..., D) to (R, D), one row per position."""
    return ops.reshape(x, (-1, x.shape[-1]))


def unflatten_positions(rows: KerasTensor, like: KerasTensor) -> KerasTensor:
    """(R, E) back to (..., E), with the leading axes of `like` (..., D)."""
    return ops.reshape(rows, (-1, *ops.shape(like)[1:-1], rows.shape[-1]))
