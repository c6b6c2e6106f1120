"""Heads of queries that share keys and values (grouped-query attention, Ainslie et al. 2023).

H heads of queries in G groups become G heads with H / G times as many queries. Keys and values are
not repeated, and the attention kernels need not know about groups.
"""

from collections.abc import Callable

from keras import KerasTensor, ops


def in_groups(
    attention: Callable,
    groups: int,
    query: KerasTensor,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
) -> tuple[KerasTensor, KerasTensor]:
    """Runs an attention whose keys and values have G heads.

    Args:
        attention: takes queries (B, G, H/G·T, K), mask and bias; returns heads and weights.
        groups: number of heads of keys and values, G.
        query: float tensor (B, H, T, K).
        mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        bias: float tensor that broadcasts to (B, H, T, S).

    Returns:
        the heads (B, H, T, K') and the weights (B, H, T, S).
    """
    _, heads, length, _ = ops.shape(query)
    if groups == heads:
        return attention(query, mask, bias)

    def split(x: KerasTensor) -> KerasTensor:
        return ops.reshape(x, (-1, heads, length, ops.shape(x)[-1]))

    joined = (_join(x, groups, heads, length) for x in (query, mask, bias))
    output, weights = attention(*joined)
    return split(output), split(weights)


def _join(
    x: KerasTensor | None, groups: int, heads: int, length: int | KerasTensor
) -> KerasTensor | None:
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
