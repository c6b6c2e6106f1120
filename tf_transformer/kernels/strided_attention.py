"""Attention to a neighbourhood and to every l-th position (Child et al. 2019, section 4.2)."""

import functools
from collections.abc import Sequence
from typing import Any

from keras import KerasTensor, ops

from tf_transformer.kernels.attention import Dropout, HeadOutput, masked, scaled, softmax
from tf_transformer.kernels.gradient import matmul_transposed
from tf_transformer.kernels.local_attention import (
    Bias,
    Blocks,
    Window,
    attention_by_offset,
    columns_by_offset,
    without_keys_zero,
    zero_padded,
)


def strided_allows(offsets: KerasTensor, window: Window, stride: int) -> KerasTensor:
    """Whether each offset, key position - query position, is in the window or a multiple of l.

    If the window ends at the query, later positions are hidden. Offsets are int of any shape.
    """
    return ops.logical_or(window.allows(offsets), _on_stride(offsets, window, stride))


def _on_stride(offsets: KerasTensor, window: Window, stride: int) -> KerasTensor:
    """Whether each offset is a multiple of l outside the window."""
    outside = ops.logical_not(window.allows(offsets))
    if window.after == 0:
        outside = ops.logical_and(outside, offsets <= 0)
    return ops.logical_and(outside, ops.equal(offsets % stride, 0))


def plain_strided_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    window: Window,
    stride: int,
    mask: KerasTensor | None = None,
    bias: Bias | None = None,
    dropout: Dropout | None = None,
) -> HeadOutput:
    """softmax(Q Kᵀ / √K) V over the keys of a window and the keys j with i - j = l, 2 l, 3 l, …

    Each head attends to both sets (the "merged head" of Child et al. 2019). If the window ends
    after the query, the second set also has the keys at i + l, i + 2 l, …

    `plain_local_attention` describes the arguments; the stride is l, and the window the first set.

    Returns:
        `HeadOutput` with weights (B, H, T, before + 1 + after + ⌈T / l⌉). The first
        before + 1 + after columns are for the window, as in `plain_local_attention`. ⌈T / l⌉
        columns for the second set follow: column m of row i is the weight of position
        m l + (i mod l), or 0 if this position is in the window. A query that may attend to nothing
        has weights and output 0.
    """
    allows = functools.partial(strided_allows, window=window, stride=stride)
    heads, weights = attention_by_offset(query, key, value, allows, mask, bias, dropout)
    near = columns_by_offset(weights, 0, window)
    return HeadOutput(heads, ops.concatenate([near, _far(weights, window, stride)], axis=3))


def _far(weights: KerasTensor, window: Window, stride: int) -> KerasTensor:
    """The columns of the second set, (B, H, T, T) to (B, H, T, ⌈T / l⌉)."""
    length = ops.shape(weights)[2]
    positions = ops.arange(length)
    offsets = positions[None, :] - positions[:, None]  # (T, T)
    count = (length + stride - 1) // stride
    far = ops.where(_on_stride(offsets, window, stride), weights, ops.zeros_like(weights))
    by_column = zero_padded(far, 0, count * stride - length, axis=3)
    # In each group of l columns, at most one is not zero.
    return ops.sum(ops.reshape(by_column, (*ops.shape(weights)[:3], count, stride)), axis=4)


class Residues:
    """Divides a sequence of T positions into l sequences of the positions with equal i mod l.

    `like` (B, H, T, K) gives the sizes. The stride is l.
    """

    def __init__(self, like: KerasTensor, stride: int):
        self.batch, _, self.length, _ = ops.shape(like)
        self.stride = stride
        self.count = (self.length + stride - 1) // stride  # positions of each sequence
        self.positions = ops.arange(self.count) * stride  # counted from the first one

    def fold(self, x: KerasTensor) -> KerasTensor:
        """(B, H, T, K) to (B·l, H, T/l, K)."""
        _, heads, _, size = ops.shape(x)
        x = zero_padded(x, 0, self.count * self.stride - self.length, axis=2)
        x = ops.reshape(x, (self.batch, heads, self.count, self.stride, size))
        x = ops.transpose(x, (0, 3, 1, 2, 4))
        return ops.reshape(x, (self.batch * self.stride, heads, self.count, size))

    def unfold(self, x: KerasTensor) -> KerasTensor:
        """(B·l, H, T/l, K) to (B, H, T, K)."""
        _, heads, _, size = ops.shape(x)
        x = ops.reshape(x, (self.batch, self.stride, heads, self.count, size))
        x = ops.transpose(x, (0, 2, 3, 1, 4))
        x = ops.reshape(x, (self.batch, heads, self.count * self.stride, size))
        return x[:, :, : self.length]

    def allowed(self, mask: KerasTensor | None, window: Window) -> KerasTensor:
        """The keys of the second set: mask (B, T) to bool (B·l, 1, T/l, T/l)."""
        if mask is None:
            mask = ops.ones((self.batch, self.length), "bool")
        mask = ops.broadcast_to(mask, (self.batch, self.length))
        keys = self.fold(mask[:, None, :, None])[..., 0]  # (B·l, 1, T/l)
        offsets = self.positions[None, :] - self.positions[:, None]
        return ops.logical_and(_on_stride(offsets, window, self.stride), keys[:, :, None])


def strided_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    window: Window,
    stride: int,
    mask: KerasTensor | None = None,
    bias: Bias | None = None,
    dropout: Dropout | None = None,
) -> HeadOutput:
    """`plain_strided_attention` with T (window + T / l) scores.

    The keys of the window are handled as in `local_attention`. The positions with equal i mod l
    form a sequence of T / l positions, which attend to each other. One softmax covers both sets.
    """
    blocks, residues = Blocks(query, window), Residues(query, stride)
    near = blocks.allowed(mask)
    far = residues.allowed(mask, window)

    def scores_of(
        parts: Blocks | Residues, keys: KerasTensor, allowed: KerasTensor, places: Sequence[Any]
    ) -> KerasTensor:
        """The scores (·, H, T', S') of the queries in each part, at these places."""
        queries = parts.fold(query)
        scores = matmul_transposed(scaled(queries), keys)
        numbers = None if bias is None else bias(queries, places[0], places[1][None])
        return masked(scores, allowed, numbers)

    near_scores = scores_of(blocks, blocks.fold_with_neighbours(key), near, blocks.positions)
    far_scores = scores_of(residues, residues.fold(key), far, [residues.positions] * 2)
    scores = ops.concatenate([blocks.unfold(near_scores), residues.unfold(far_scores)], axis=3)
    weights = softmax(scores, query.dtype)
    near_has, far_has = (
        parts.unfold(ops.cast(ops.any(allowed, axis=-1, keepdims=True), "int32")) > 0
        for parts, allowed in ((blocks, near), (residues, far))
    )
    kept = dropout(weights) if dropout else weights
    columns = ops.shape(near_scores)[3]
    near_heads = ops.matmul(blocks.fold(kept[..., :columns]), blocks.fold_with_neighbours(value))
    far_heads = ops.matmul(residues.fold(kept[..., columns:]), residues.fold(value))
    heads = blocks.unfold(near_heads) + residues.unfold(far_heads)
    heads, weights = without_keys_zero(heads, weights, ops.logical_or(near_has, far_has))
    near_weights = blocks.weights(blocks.fold(weights[..., :columns]))
    return HeadOutput(heads, ops.concatenate([near_weights, weights[..., columns:]], axis=3))
