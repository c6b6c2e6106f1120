"""Scaled dot-product attention (paper section 3.2.1)."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import matmul_transposed
from tf_transformer.machine.thresholds import FEW_QUERIES

# Differs from the paper: its −∞ (section 3.2.3) is finite here. So a query that may attend to
# nothing gets the mean of the values instead of NaN.
MASKED_SCORE = -1e9

Dropout = Callable[[KerasTensor], KerasTensor]
MaybeTensor: TypeAlias = KerasTensor | None
Product = Callable[[KerasTensor, KerasTensor, bool], KerasTensor]
"""product(a, b, transposed): a b, or a bᵀ, of the last two axes of (B, H, M, K) and others."""


class HeadOutput(NamedTuple):
    """The output and the attention weights of all heads."""

    heads: KerasTensor  # (B, H, T, K)
    weights: KerasTensor  # (B, H, T, S), before dropout; rows sum to 1


def plain_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
    dropout: Dropout | None = None,
) -> HeadOutput:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √K) V (paper equation 1).

    The paper has as many heads of keys and values, G, as heads of queries, H. With G < H, H / G
    heads of queries share each head of keys and values (grouped-query attention, Ainslie et al.
    2023).

    Args:
        query: float tensor (B, H, T, K).
        key: float tensor (B, G, S, K).
        value: float tensor (B, G, S, K). Its last axis may have another size than the keys' axis.
        mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        bias: float tensor that broadcasts to (B, H, T, S), added to the scores.
        dropout: applied to the attention weights before they multiply the values.

    Returns:
        `HeadOutput` in the dtype of `query`. The softmax always runs in float32.

    Example:
        >>> x = np.ones((2, 3, 5, 7), "float32")
        >>> plain_attention(x, x, x).heads.shape
        TensorShape([2, 3, 5, 7])
    """
    key, value = for_each_head(key, query), for_each_head(value, query)
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2)) / math.sqrt(query.shape[-1])
    weights = softmax(masked(scores, mask, bias), scores.dtype)
    return HeadOutput(ops.matmul(dropout(weights) if dropout else weights, value), weights)


def for_each_head(x: KerasTensor, query: KerasTensor) -> KerasTensor:
    """Repeats keys or values (B, G, S, K) for the H heads of queries: (B, H, S, K)."""
    queries_each = query.shape[1] // x.shape[1]
    return x if queries_each == 1 else ops.repeat(x, queries_each, axis=1)


def masked(scores: KerasTensor, mask: KerasTensor | None, bias: KerasTensor | None) -> KerasTensor:
    """Adds the bias to scores (B, H, T, S) in float32; `MASKED_SCORE` where the mask is False."""
    scores = ops.cast(scores, "float32")
    if bias is not None:
        scores = scores + ops.cast(bias, "float32")
    return scores if mask is None else ops.where(mask, scores, MASKED_SCORE)


def softmax(scores: KerasTensor, dtype: str) -> KerasTensor:
    """The softmax of float32 scores over the last axis, cast to `dtype`."""
    return ops.cast(ops.softmax(scores, axis=-1), dtype)


def attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
    dropout: Dropout | None = None,
    in_steps: Product | None = None,
) -> HeadOutput:
    """`plain_attention` that scales the queries instead of the scores, which are more.

    The products have their own gradient. A decoding step has few queries. A search gives another
    way to compute its products, `in_steps`.
    """

    def one_head_each(query: KerasTensor, mask: MaybeTensor, bias: MaybeTensor) -> HeadOutput:
        if in_steps is not None and dropout is None and _are_few(query.shape[2]):
            visible = masked(in_steps(scaled(query), key, True), mask, bias)
            # These operations start faster than `ops.softmax`.
            exponentials = ops.exp(visible - ops.max(visible, axis=-1, keepdims=True))
            shares = exponentials / ops.sum(exponentials, axis=-1, keepdims=True)
            weights = ops.cast(shares, query.dtype)
            return HeadOutput(in_steps(weights, value, False), weights)
        scores = matmul_transposed(scaled(query), key)
        weights = softmax(masked(scores, mask, bias), scores.dtype)
        return HeadOutput(ops.matmul(dropout(weights) if dropout else weights, value), weights)

    if key.shape[1] == query.shape[1]:
        return one_head_each(query, mask, bias)
    return in_groups(one_head_each, key.shape[1], query, mask, bias)


def _are_few(queries: int | None) -> bool:
    return queries is not None and queries <= FEW_QUERIES


def in_groups(
    attention: Callable[..., HeadOutput], groups: int, query: KerasTensor, *others: MaybeTensor
) -> HeadOutput:
    """Runs an attention to keys and values of G heads; query, mask and bias have H heads.

    H heads of queries in G groups become G heads with H / G times as many queries. Keys and values
    are not repeated, and `attention` need not know about groups.
    """
    _, heads, length, _ = ops.shape(query)
    if groups == heads:
        return attention(query, *others)
    joined = (_join(x, groups, heads, length) for x in (query, *others))
    output, weights = attention(*joined)
    split = (ops.reshape(x, (-1, heads, length, ops.shape(x)[-1])) for x in (output, weights))
    return HeadOutput(*split)


def _join(x: MaybeTensor, groups: int, heads: int, length: int | KerasTensor) -> MaybeTensor:
    """Queries, mask or bias (B, H or 1, T or 1, N) to (B, G or 1, H/G·T or 1, N)."""
    if x is None:
        return None
    while len(x.shape) < 4:
        x = x[None]
    if x.shape[1] == 1:
        return x if x.shape[2] == 1 else ops.tile(x, (1, 1, heads // groups, 1))
    batch, _, _, size = ops.shape(x)
    if x.shape[2] == 1:
        x = ops.broadcast_to(x, (batch, heads, length, size))
    return ops.reshape(x, (-1, groups, heads // groups * length, size))


def scaled(query: KerasTensor) -> KerasTensor:
    """Queries (B, H, T, K) / √K."""
    return query * (1.0 / math.sqrt(query.shape[-1]))
