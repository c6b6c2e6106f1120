"""Slices of a tensor by their indices, such as the hypotheses that stay in a beam."""

import functools
import operator

from keras import KerasTensor, ops


def plain_gather(
    values: KerasTensor, indices: KerasTensor, axis: int = 0, batch_dims: int = 0
) -> KerasTensor:
    """The slices of `values` (..., X, ...) at some indices of an axis, which are not negative.

    Args:
        values: a tensor, whose axis `axis` has size X.
        indices: int32 (N,), in place of the axis; or (B, N) with `batch_dims`.
        axis: the axis; at least 1 with `batch_dims`.
        batch_dims: 0, or 1 for other indices of each of B `values`, (B, ..., X, ...).

    Example:
        >>> values = np.array([[5, 6, 7], [8, 9, 4]])
        >>> np.asarray(plain_gather(values, np.array([[2, 0], [1, 1]], "int32"), 1, 1)).tolist()
        [[7, 5], [9, 9]]
    """
    if not batch_dims:
        return ops.take(values, indices, axis=axis)
    shape = ops.shape(values)
    first, size, rest = shape[:axis], shape[axis], shape[axis + 1 :]
    starts = ops.arange(functools.reduce(operator.mul, first), dtype="int32") * size
    of_each = ops.reshape(indices, (-1, *[1] * (axis - 1), ops.shape(indices)[1]))
    rows = ops.reshape(starts, (*first, 1)) + of_each
    return ops.take(ops.reshape(values, (-1, *rest)), rows, axis=0)
