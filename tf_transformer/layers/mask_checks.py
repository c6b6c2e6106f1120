"""Errors for tensors that are not masks of the attention that they are given to."""

import keras
from keras import KerasTensor, ops


def require_mask(
    name: str, mask: KerasTensor | None, query: KerasTensor, keys: KerasTensor, heads: int
) -> None:
    """Checks that a mask is one for the scores of queries (B, T, D) and keys (B, S, D').

    A mask has four axes, because (B, T, S) would broadcast as (H, T, S), and (B, S) as (T, S). It
    is not of a float dtype, and broadcasts to (B, H, T, S).
    """
    if mask is None:
        return
    scores = (query.shape[0], heads, query.shape[1], keys.shape[1])
    dtype, shape = keras.backend.standardize_dtype(mask.dtype), tuple(mask.shape)
    fits = all(
        size in (1, of_scores)
        for size, of_scores in zip(shape, scores, strict=False)
        if isinstance(size, int) and isinstance(of_scores, int)
    )
    if "float" in dtype or not fits or len(shape) != 4:
        raise ValueError(
            f"expected {name} as a bool tensor that broadcasts to (batch, heads, queries, keys), "
            f"here {scores}, got {dtype} of shape {shape}. Keys are not passed: they are made of "
            "the values. A mask (batch, queries, keys) needs an axis of heads, mask[:, None]. A "
            "mask (batch, keys) needs one of queries, too: mask[:, None, None]."
        )


def mask_of_keys(mask: KerasTensor | None, x: KerasTensor) -> KerasTensor | None:
    """Turns a mask that hides keys, (B or 1, 1, 1, T), into a mask (B, T) for x (B, T, D)."""
    if mask is None:
        return None
    if len(mask.shape) != 4 or mask.shape[1] != 1 or mask.shape[2] != 1:
        raise ValueError(
            "all kinds of self-attention but full take a mask (B, 1, 1, T) that hides keys, got "
            f"{tuple(mask.shape)}. Leave out a causal mask: in a decoder they are always causal."
        )
    return ops.broadcast_to(mask[:, 0, 0], ops.shape(x)[:2])
