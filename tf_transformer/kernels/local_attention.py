"""Attention to the neighbourhood of each position ("restricted" in paper section 4)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import KerasTensor, ops

from tf_transformer.kernels.attention import Dropout, HeadOutput, attention, plain_attention

# Takes queries (B, H, T, K), query positions (T,) and key positions (1, S). Returns numbers to add
# to the scores, (1 or B, 1 or H, T, S), which depend on differences of positions only.
Bias = Callable[[KerasTensor, KerasTensor, KerasTensor], KerasTensor | None]


class Window(NamedTuple):
    """The positions that a query at position i attends to: i - before to i + after."""

    before: int
    after: int

    @property
    def size(self) -> int:
        """Number of positions in the window."""
        return self.before + 1 + self.after

    def allows(self, offsets: KerasTensor) -> KerasTensor:
        """Whether each offset, key position - query position, is in the window: bool tensor."""
        return ops.logical_and(offsets >= -self.before, offsets <= self.after)


def plain_local_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    window: Window,
    mask: KerasTensor | None = None,
    bias: Bias | None = None,
    dropout: Dropout | None = None,
) -> HeadOutput:
    """softmax(Q Kᵀ / √K) V over the keys j with i - before ≤ j ≤ i + after.

    `plain_attention` describes the arguments, which have T positions and H heads. The mask is
    (B, T), True = may be attended to, and `Bias` makes the numbers that are added to the scores.

    Returns:
        `HeadOutput` with weights (B, H, T, before + 1 + after). Column m of row i is the weight of
        position i - before + m. A query that may attend to nothing has weights and output 0.
    """
    heads, weights = attention_by_offset(query, key, value, window.allows, mask, bias, dropout)
    return HeadOutput(heads, columns_by_offset(weights, 0, window))


def attention_by_offset(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    allows: Callable[[KerasTensor], KerasTensor],
    mask: KerasTensor | None,
    bias: Bias | None,
    dropout: Dropout | None,
) -> HeadOutput:
    """Attention to the keys whose offset from the query `allows` admits; weights (B, H, T, T)."""
    positions = ops.arange(ops.shape(query)[2])
    allowed = allows(positions[None, :] - positions[:, None])[None, None]  # (1, 1, T, T)
    if mask is not None:
        allowed = ops.logical_and(allowed, mask[:, None, None])
    numbers = None if bias is None else bias(query, positions, positions[None])
    heads, weights = plain_attention(query, key, value, allowed, numbers, dropout)
    return without_keys_zero(heads, weights, allowed)


def without_keys_zero(heads: KerasTensor, weights: KerasTensor, allowed: KerasTensor) -> HeadOutput:
    """Sets output and weights (B, H, T, ·) to 0 for queries that may attend to no key.

    `allowed` broadcasts to (B, 1, T, S).
    """
    has_key = ops.any(allowed, axis=-1, keepdims=True)
    return HeadOutput(*(ops.where(has_key, x, ops.zeros_like(x)) for x in (heads, weights)))


def columns_by_offset(weights: KerasTensor, first: Any, window: Window) -> KerasTensor:
    """(B, H, T, S) to (B, H, T, before + 1 + after): column m of row i is key i - before + m.

    Column 0 of `weights` is the key at position -`first`. Columns without a key become 0.
    """
    batch, heads, rows, keys = ops.shape(weights)
    # With `before` zeros in front, row i begins in column first + i. Reading the same numbers as
    # rows that are one column longer moves each row to the column where it must begin.
    more = window.after + rows
    padded = zero_padded(weights, window.before, more, axis=3)
    columns = window.before + keys + more
    flat = zero_padded(ops.reshape(padded, (batch, heads, rows * columns)), 0, rows, axis=2)
    shifted = ops.reshape(flat, (batch, heads, rows, columns + 1))
    return shifted[:, :, :, first : first + window.size]


def zero_padded(x: KerasTensor, before: Any, after: Any, axis: int) -> KerasTensor:
    """Pads `x` with zeros (or False) before and after it along an axis; sizes may be tensors."""
    parts = [x]
    for place, size in ((0, before), (len(parts), after)):
        if isinstance(size, int) and size == 0:
            continue
        shape = list(ops.shape(x))
        shape[axis] = size
        zeros = ops.zeros(shape, x.dtype)
        parts = [zeros, *parts] if place == 0 else [*parts, zeros]
    return ops.concatenate(parts, axis=axis) if len(parts) > 1 else x


class Blocks:
    """Divides sequences, `like` (B, H, T, K), into n blocks of c positions as rows of the batch.

    A block is as long as the window reaches to one side. So a query finds all of its window in its
    own block and the two blocks beside it.
    """

    def __init__(self, like: KerasTensor, window: Window):
        self.batch, _, self.length, _ = ops.shape(like)
        self.window = window
        reach = max(window.before, window.after, 1)
        is_known = isinstance(self.length, int)
        smaller, larger = (min, max) if is_known else (ops.minimum, ops.maximum)
        self.size = larger(smaller(reach, self.length), 1)
        self.count = (self.length + self.size - 1) // self.size
        self.sides = (int(window.before > 0), int(window.after > 0))  # neighbours

    def fold(self, x: KerasTensor) -> KerasTensor:
        """(B, H, T, K) to (B·n, H, c, K)."""
        return self._as_rows(self._blocks(x, 0, 0))

    def fold_with_neighbours(self, x: KerasTensor) -> KerasTensor:
        """(B, H, T, K) to (B·n, H, S, K): each block with its neighbours, S = 2 c or 3 c."""
        blocks = self._blocks(x, *self.sides)
        shifted = [blocks[:, :, i : i + self.count] for i in range(1 + sum(self.sides))]
        return self._as_rows(ops.concatenate(shifted, axis=3))

    def unfold(self, x: KerasTensor) -> KerasTensor:
        """(B·n, H, c, K) to (B, H, T, K)."""
        _, heads, _, size = ops.shape(x)
        x = ops.reshape(x, (self.batch, self.count, heads, self.size, size))
        x = ops.transpose(x, (0, 2, 1, 3, 4))
        x = ops.reshape(x, (self.batch, heads, self.count * self.size, size))
        return x[:, :, : self.length]

    @property
    def positions(self) -> tuple[KerasTensor, KerasTensor]:
        """Positions of a block's queries (c,) and keys (S,), counted from its first query."""
        before, after = self.sides
        return ops.arange(self.size), ops.arange(-before * self.size, (1 + after) * self.size)

    def allowed(self, mask: KerasTensor | None) -> KerasTensor:
        """Which keys are visible and in the window of a query: mask (B, T) to (B·n, 1, c, S)."""
        if mask is None:
            mask = ops.ones((self.batch, self.length), "bool")
        mask = ops.broadcast_to(mask, (self.batch, self.length))
        keys = self.fold_with_neighbours(mask[:, None, :, None])[..., 0]  # (B·n, 1, S)
        queries, places = self.positions
        in_window = self.window.allows(places[None, :] - queries[:, None])  # (c, S)
        return ops.logical_and(in_window, keys[:, :, None])

    def weights(self, weights: KerasTensor) -> KerasTensor:
        """(B·n, H, c, S) to (B, H, T, before + 1 + after), as in `plain_local_attention`."""
        return self.unfold(columns_by_offset(weights, self.sides[0] * self.size, self.window))

    def _blocks(self, x: KerasTensor, before: int, after: int) -> KerasTensor:
        """(B, H, T, K) to (B, H, before + n + after, c, K), with blocks of zeros on both ends."""
        _, heads, _, size = ops.shape(x)
        last = self.count * self.size - self.length
        x = zero_padded(x, before * self.size, last + after * self.size, axis=2)
        return ops.reshape(x, (self.batch, heads, before + self.count + after, self.size, size))

    def _as_rows(self, blocks: KerasTensor) -> KerasTensor:
        """(B, H, n, S, K) to (B·n, H, S, K)."""
        batch, heads, count, rows, size = ops.shape(blocks)
        blocks = ops.transpose(blocks, (0, 2, 1, 3, 4))
        return ops.reshape(blocks, (batch * count, heads, rows, size))


def local_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    window: Window,
    mask: KerasTensor | None = None,
    bias: Bias | None = None,
    dropout: Dropout | None = None,
) -> HeadOutput:
    """`plain_local_attention` by blocks, with memory and time linear in T.

    A block of c queries attends to the keys of its own block and of the blocks beside it. The
    window reaches at most c positions to one side. Differences of positions are the same in all
    blocks, so one bias serves all.
    """
    blocks = Blocks(query, window)
    queries = blocks.fold(query)
    keys, values = map(blocks.fold_with_neighbours, (key, value))
    allowed = blocks.allowed(mask)
    query_positions, key_positions = blocks.positions
    numbers = None if bias is None else bias(queries, query_positions, key_positions[None])
    heads, weights = attention(queries, keys, values, allowed, numbers, dropout)
    heads, weights = without_keys_zero(heads, weights, allowed)
    return HeadOutput(blocks.unfold(heads), blocks.weights(weights))
