"""Between matrices of concatenated heads and heads: (B·T, Σ H·K) and (B, H, T, K)."""

import itertools
from collections.abc import Sequence

from keras import KerasTensor, ops


def split_heads(
    rows: KerasTensor, length: int | KerasTensor, sizes: Sequence[tuple[int, int]]
) -> list[KerasTensor]:
    """Concatenated matrices (B·T, Σ H·K), each by head: (B, H, T, K).

    Matrices of equal size are moved together, by `einsum`: TensorFlow starts it in a seventh of the
    time that oneDNN's transposition takes. One position has nothing to move.

    Args:
        rows: float tensor (B·T, Σ H·K).
        length: T.
        sizes: H and K of each matrix.
    """
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
