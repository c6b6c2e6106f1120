"""Scaled dot-product attention (paper section 3.2.1)."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import matmul_transposed
from tf_transformer.machine.thresholds import ELEMENTWISE_MULTIPLICATIONS, ELEMENTWISE_QUERIES

# Differs from the paper: its −∞ (section 3.2.3) is finite here. So a query that may attend to
# nothing gets the mean of the values instead of NaN.
MASKED_SCORE = -1e9

Dropout = Callable[[KerasTensor], KerasTensor]
MaybeTensor: TypeAlias = KerasTensor | None


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


class Products(NamedTuple):
    """The products of queries and keys, a bᵀ, and of weights and values, a b."""

    transposed: Callable[[KerasTensor, KerasTensor], KerasTensor] = matmul_transposed
    plain: Callable[[KerasTensor, KerasTensor], KerasTensor] = ops.matmul


def attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
    dropout: Dropout | None = None,
    in_steps: Products = Products(),
) -> HeadOutput:
    """`plain_attention`, with two tuned forms: matrix products, and element by element.

    The matrix products scale the queries instead of the scores, which are more. They have their
    own gradient. A decoding step has few queries, so it multiplies element by element: oneDNN takes
    up to ten times as long for small products, because it divides each product between threads.
    Large products of such a step are those `in_steps`.
    """

    def one_head_each(query: KerasTensor, mask: MaybeTensor, bias: MaybeTensor) -> HeadOutput:
        queries = query.shape[2]
        is_step = queries is not None and key.shape[2] is None  # a known one is of a sequence
        products = in_steps if is_step else Products()

        def by_products() -> HeadOutput:
            scores = products.transposed(scaled(query), key)
            weights = softmax(masked(scores, mask, bias), scores.dtype)
            heads = products.plain(dropout(weights) if dropout else weights, value)
            return HeadOutput(heads, weights)

        if dropout is not None or not is_step or queries > ELEMENTWISE_QUERIES:
            return by_products()
        is_small = ops.size(key) * queries <= ELEMENTWISE_MULTIPLICATIONS
        return ops.cond(
            is_small, lambda: _elementwise_attention(query, key, value, mask, bias), by_products
        )

    if key.shape[1] == query.shape[1]:
        return one_head_each(query, mask, bias)
    return in_groups(one_head_each, key.shape[1], query, mask, bias)


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


def _elementwise_attention(
    query: KerasTensor, key: KerasTensor, value: KerasTensor, mask: MaybeTensor, bias: MaybeTensor
) -> HeadOutput:
    """`plain_attention` of T known queries, one query at a time."""
    query = scaled(query)
    outputs, weights = [], []
    for t in range(query.shape[2]):
        scores = ops.sum(query[:, :, t : t + 1] * key, axis=-1, keepdims=True)  # (B, H, S, 1)
        visible = masked(scores, _row(mask, t), _row(bias, t))
        # These operations start faster than `ops.softmax`.
        exponentials = ops.exp(visible - ops.max(visible, axis=2, keepdims=True))
        shares = exponentials / ops.sum(exponentials, axis=2, keepdims=True)
        weights.append(ops.cast(shares, scores.dtype))
        outputs.append(ops.sum(weights[-1] * value, axis=2, keepdims=True))
    if len(outputs) == 1:
        return HeadOutput(outputs[0], ops.swapaxes(weights[0], 2, 3))
    by_query = ops.swapaxes(ops.concatenate(weights, axis=3), 2, 3)
    return HeadOutput(ops.concatenate(outputs, axis=2), by_query)


def _row(x: KerasTensor | None, t: int) -> KerasTensor | None:
    """Row t of a mask or bias (B, H, T or 1, S), as (B, H, S, 1)."""
    return None if x is None else x[:, :, t if x.shape[2] != 1 else 0, :, None]
