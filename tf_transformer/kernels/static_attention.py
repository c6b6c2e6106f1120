"""Attention in the layout of keys and values of a static cache, which XLA multiplies in place."""

from keras import KerasTensor, ops

from tf_transformer.kernels.attention import (
    HeadOutput,
    MaybeTensor,
    in_groups,
    masked,
    plain_attention,
    scaled,
    softmax,
)


def plain_static_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    groups: int,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
) -> HeadOutput:
    """`plain_attention` for the layout of keys and values in `decoding/static_cache.py`.

    Queries are (B, H, T, K), keys (B·G, K, S) and values (B·G, S, K). All sizes but B are known,
    and G is the number of groups.
    """
    key = ops.swapaxes(_split_batch(key, groups), -1, -2)
    return plain_attention(query, key, _split_batch(value, groups), mask, bias)


def static_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    groups: int,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
) -> HeadOutput:
    """`plain_static_attention` that leaves the axes of the cache in place.

    XLA would copy the whole cache to move an axis.
    """

    def one_head_each(query: KerasTensor, mask: MaybeTensor, bias: MaybeTensor) -> HeadOutput:
        _, _, length, size = query.shape
        scores = ops.matmul(ops.reshape(scaled(query), (-1, length, size)), key)  # (B·G, T, S)
        weights = softmax(masked(_split_batch(scores, groups), mask, bias), scores.dtype)
        output = ops.matmul(ops.reshape(weights, (-1, *ops.shape(weights)[2:])), value)
        return HeadOutput(_split_batch(output, groups), weights)

    return in_groups(one_head_each, groups, query, mask, bias)


def _split_batch(x: KerasTensor, heads: int) -> KerasTensor:
    """(B·H, M, N) to (B, H, M, N)."""
    return ops.reshape(x, (-1, heads, *ops.shape(x)[1:]))
