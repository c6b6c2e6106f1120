"""Between a sequence (B, T, D) and heads (B, H, T, K)."""

import itertools
from collections.abc import Sequence
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.layers.initializers import ConcatenatedInitializer


class HeadProjection(keras.layers.Dense):
    """Matrices with the same input as one product, whose result is divided by head.

    Args:
        sizes: number of heads and size of a head, for each matrix (D, H·K).
        initializers: one per matrix. Glorot's fans are those of a matrix alone.
        **options: arguments of `keras.layers.Dense`.
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]],
        initializers: Sequence[keras.initializers.Initializer],
        **options: Any,
    ):
        columns = [heads * size for heads, size in sizes]
        fill = ConcatenatedInitializer(columns, initializers) if columns[1:] else initializers[0]
        super().__init__(sum(columns), kernel_initializer=fill, **options)
        self.sizes = tuple(sizes)

    def heads(self, x: KerasTensor) -> list[KerasTensor]:
        """X (B, T, D) to (B, H, T, K) for each matrix.

        Matrices of equal size are moved together, by `einsum`: TensorFlow starts it in a seventh of
        the time that oneDNN's transposition takes. One position has nothing to move.
        """
        rows, length, sizes = self(flatten_positions(x)), ops.shape(x)[1], self.sizes
        is_one = isinstance(length, int) and length == 1
        if len(set(sizes)) == 1 and not is_one:
            together = ops.reshape(rows, (-1, length, len(sizes), *sizes[0]))
            return ops.unstack(ops.einsum("btnhk->nbhtk", together), len(sizes))
        ends = list(itertools.accumulate(heads * size for heads, size in sizes))[:-1]
        parts = zip(ops.split(rows, ends, axis=-1) if ends else [rows], sizes, strict=True)
        if is_one:
            return [ops.reshape(part, (-1, heads, 1, size)) for part, (heads, size) in parts]
        by_position = [ops.reshape(part, (-1, length, *of_head)) for part, of_head in parts]
        return [ops.einsum("bthk->bhtk", part) for part in by_position]


def concatenate_heads(heads: KerasTensor) -> KerasTensor:
    """Heads (B, H, T, K), one after another in each row: (B·T, H·K)."""
    size = heads.shape[1] * heads.shape[3]
    if heads.shape[2] != 1:
        heads = ops.einsum("bhtk->bthk", heads)
    return ops.reshape(heads, (-1, size))
