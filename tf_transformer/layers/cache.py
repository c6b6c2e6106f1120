"""Layouts of keys and values: in training, and as a cache that decoding appends to.

Two things have several layouts.

The keys and values of one attention layer. `KeyValue` and `StaticKeyValue` can be appended to:

    append(new)                             the keys and values with those of new positions
    attend(query, mask, bias, dropout)      attention of projected queries to them

and these two, `Memory` and `AbsorbedKeyValue` can be the memory of cross-attention:

    cross_attend(attention, x, mask)        cross-attention of a layer whose input is x

The cache of a whole decoder (`GrowingCache`, `StaticCache`) holds one row per decoded token. The W
hypotheses of a sentence share the rows of that sentence, and an ancestor mask (B, W, R) marks the
rows of each hypothesis. When a beam is reordered, masks move and rows stay.

    layers                                  keys and values of each layer
    share(batch, beam_size, visible)        the first ancestor mask, of all hypotheses
    positions(beam_size, filled, index)     the position of each row
    forget(ancestors, oldest)               rows before a position are not attended to any more
    open(ancestors, index, filled)          makes room for the W rows of a step
    mask(ancestors, has_padding)            the attention mask of the step
    close(ancestors, layers)                takes the keys and values of the step
    resize(ancestors, rows)                 changes the capacity (static layout only)

The rows of a prompt, one per column, may come first (`of_prompt`); `filled` is their number.

A new layout implements one of these two interfaces; no layer needs to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import HeadOutput, absorbed_attention
from tf_transformer.machine.thresholds import COMPACTION_INTERVAL

if TYPE_CHECKING:
    from tf_transformer.layers.attention import MultiHeadAttention


class Attended(NamedTuple):
    """The result of an attention layer."""

    output: KerasTensor  # (B, T, D)
    weights: KerasTensor  # (B, H, T, S), before dropout; rows sum to 1
    cache: Any  # the keys and values attended to, in their layout


class KeyValue(NamedTuple):
    """Keys and values as they are projected. They grow by concatenation."""

    key: KerasTensor  # (B, G, S, K), G heads of keys and values
    value: KerasTensor  # (B, G, S, K)

    def append(self, new: KeyValue) -> KeyValue:
        """With `new` (B, H, T, K) after them: (B, H, S + T, K)."""
        return KeyValue(*(ops.concatenate(pair, axis=2) for pair in zip(self, new, strict=True)))

    def attend(self, query, mask=None, bias=None, dropout=None) -> HeadOutput:
        """Attention of queries (B, H, T, K); see `kernels.attention.plain_attention`."""
        return kernels.current().attention(query, *self, mask, bias, dropout)

    def cross_attend(
        self, attention: MultiHeadAttention, x: KerasTensor, mask=None, training=None
    ) -> Attended:
        """Cross-attention of a layer to these keys and values, with x (B, T, D) as its input."""
        return attention.attend(attention.project_query(x), self, mask, training=training)


class Memory(NamedTuple):
    """The encoder's output, which each layer projects to its own keys and values."""

    states: KerasTensor  # (B, S, D)

    def cross_attend(
        self, attention: MultiHeadAttention, x: KerasTensor, mask=None, training=None
    ) -> Attended:
        """As `KeyValue.cross_attend`."""
        key_value = attention.project_key_value(self.states)
        return key_value.cross_attend(attention, x, mask, training)


class StaticKeyValue(NamedTuple):
    """Keys and values of fixed size, in the order of axes that XLA multiplies them in.

    XLA merges the batch axes of a product. With merged axes in the cache, new rows are written in
    place; a reshape in between copies all keys and values twice per step. On CPUs the product of
    many queries with transposed keys takes a third of the time.
    """

    key: KerasTensor  # (B·H, K, S)
    value: KerasTensor  # (B·H, S, K)
    start: KerasTensor  # int32 scalar: the first free row

    @classmethod
    def of(cls, key_value: KeyValue) -> StaticKeyValue:
        """Full keys and values (B, H, S, K) in this layout."""
        key, value = (ops.reshape(x, (-1, *ops.shape(x)[2:])) for x in key_value)
        return cls(ops.transpose(key, (0, 2, 1)), value, ops.convert_to_tensor(0, "int32"))

    def append(self, new: KeyValue) -> StaticKeyValue:
        """With `new` (B, H, T, K) written from row `start` on."""
        key, value, _ = StaticKeyValue.of(new)
        return StaticKeyValue(
            ops.slice_update(self.key, (0, 0, self.start), key),
            ops.slice_update(self.value, (0, self.start, 0), value),
            self.start + new.key.shape[2],
        )

    def attend(self, query, mask=None, bias=None, dropout=None) -> HeadOutput:
        """Attention of queries (B, H, T, K), all but B known. Searches have no dropout."""
        return kernels.current().static_attention(query, self.key, self.value, mask, bias)

    def cross_attend(
        self, attention: MultiHeadAttention, x: KerasTensor, mask=None, training=None
    ) -> Attended:
        """As `KeyValue.cross_attend`."""
        return attention.attend(attention.project_query(x), self, mask, training=training)


class AbsorbedKeyValue(NamedTuple):
    """The memory of one short sentence, with W^Q and W^O multiplied into keys and values.

    If the sentence has fewer tokens than a head has dimensions, these products are smaller than
    W^Q and W^O, and reading weights is what takes the time of a decoding step of one sentence.
    """

    key: KerasTensor  # (D, H·S): no batch axis, because a reshape would cost XLA a copy
    value: KerasTensor  # (H·S, D)

    @classmethod
    def of(cls, key_value: KeyValue, attention: MultiHeadAttention) -> AbsorbedKeyValue:
        """Keys and values (1, G, S, K) with the weights of a cross-attention layer.

        Raises:
            ValueError: when the layer has biases, which would have to be added in between.
        """
        if attention.use_bias:
            raise ValueError(
                f"{attention.name} has biases, so its memory cannot absorb W^Q and W^O. "
                "Use the keys and values as they are."
            )
        query, output = (
            ops.cast(projection.kernel, attention.compute_dtype)
            for projection in (attention.query_projection, attention.output_projection)
        )
        key, value = (x[0] for x in key_value)  # (G, S, K)
        groups = attention.num_key_value_heads
        each = attention.num_heads // groups  # heads of queries that share keys and values
        by_head = ops.reshape(query, (-1, groups, each, attention.key_dim))
        key = ops.einsum("dgek,gsk->dges", by_head * attention.key_dim**-0.5, key)
        by_head = ops.reshape(output, (groups, each, attention.value_dim, -1))
        value = ops.einsum("gsk,gekd->gesd", value, by_head)
        return cls(
            ops.reshape(key, (query.shape[0], -1)), ops.reshape(value, (-1, output.shape[1]))
        )

    def cross_attend(
        self, attention: MultiHeadAttention, x: KerasTensor, mask=None, training=None
    ) -> Attended:
        """As `KeyValue.cross_attend`, for x (1, T, D), T known. There is nothing to project."""
        output, weights = absorbed_attention(x, self.key, self.value, attention.num_heads, mask)
        return Attended(output, weights, self)


class LayerSize(NamedTuple):
    """Sizes and dtype of the keys and values of one layer."""

    num_heads: int  # of keys and values
    key_dim: int
    value_dim: int
    dtype: str

    def zeros(self, batch, rows) -> list[KerasTensor]:
        """Keys and values (B, H, R, K) of zeros."""
        sizes = (self.key_dim, self.value_dim)
        return [ops.zeros((batch, self.num_heads, rows, size), self.dtype) for size in sizes]


class GrowingCache(NamedTuple):
    """A cache that grows by W rows per step, so that no step costs more than necessary.

    The hypotheses of a beam soon descend from the same few tokens. Every `COMPACTION_INTERVAL`
    steps the rows that no hypothesis descends from are removed.
    """

    layers: list[KeyValue]  # per layer: (B, H, R, K)
    rows: KerasTensor  # int32 (B, R): the position of each row

    @classmethod
    def empty(cls, source: KerasTensor, num_layers: int, layer: LayerSize, rows) -> GrowingCache:
        """A cache without rows for the sentences of `source`, int (B, S); `rows` is not used."""
        # 0, but computed, so that TensorFlow treats the size as one that may change.
        none = ops.cast(0 * ops.sum(source), "int32")
        batch = ops.shape(source)[0]
        empty = KeyValue(*layer.zeros(batch, none))
        return cls([empty] * num_layers, ops.zeros((batch, none), "int32"))

    @classmethod
    def of_prompt(cls, layers: list[KeyValue], batch) -> GrowingCache:
        """A cache with keys and values (B, H, P, K) of a prompt's columns."""
        columns = ops.shape(layers[0].key)[2]
        rows = ops.broadcast_to(ops.arange(columns, dtype="int32"), (batch, columns))
        none = 0 * ops.sum(rows)  # computed, as in `empty`
        empty = [KeyValue(*(field[:, :, :none] for field in layer)) for layer in layers]
        layers = [layer.append(no_rows) for layer, no_rows in zip(layers, empty, strict=True)]
        return cls(layers, ops.concatenate([rows, rows[:, :none]], axis=1))

    def share(
        self, batch, beam_size: int, visible: KerasTensor | None = None
    ) -> tuple[KerasTensor, GrowingCache]:
        """The first ancestor mask (B, W, R): `visible`, bool (B, 1, R), or no row."""
        shape = (batch, beam_size, ops.shape(self.rows)[1])
        return _first_ancestors(shape, visible), self

    def positions(
        self, beam_size: int, filled: int | KerasTensor = 0, index: KerasTensor | None = None
    ) -> KerasTensor:
        """The position of each row, int32 (B, R)."""
        return self.rows

    def forget(self, ancestors: KerasTensor, oldest: KerasTensor) -> tuple[KerasTensor, Any]:
        """Without the rows before position `oldest`.

        The rows of a single hypothesis are in the order of positions; those of several are removed
        with the rows that have no descendant.
        """
        if ancestors.shape[1] > 1:
            return ops.logical_and(ancestors, (self.rows >= oldest)[:, None]), self
        first = ops.sum(ops.cast(self.rows[:1] < oldest, "int32"))
        layers = [KeyValue(*(field[:, :, first:] for field in layer)) for layer in self.layers]
        return ancestors[:, :, first:], GrowingCache(layers, self.rows[:, first:])

    def open(
        self, ancestors: KerasTensor, index: KerasTensor, filled: int | KerasTensor = 0
    ) -> tuple[KerasTensor, GrowingCache]:
        """Ancestor mask (B, W, R + W) and cache for step `index`, at position `filled + index`."""
        batch, beam_size, _ = ops.shape(ancestors)
        cache = self
        if beam_size > 1:
            ancestors, cache = ops.cond(
                ops.equal(index % COMPACTION_INTERVAL, COMPACTION_INTERVAL - 1),
                lambda: self._compact(ancestors),
                lambda: (ancestors, self),
            )
        own_rows = ops.broadcast_to(ops.eye(beam_size, dtype="bool"), (batch, *[beam_size] * 2))
        positions = ops.broadcast_to(index + filled, (batch, beam_size))
        return (
            ops.concatenate([ancestors, own_rows], axis=2),
            cache._replace(rows=ops.concatenate([cache.rows, positions], axis=1)),
        )

    def mask(self, ancestors: KerasTensor, has_padding: bool = False) -> KerasTensor | None:
        """The attention mask (B, 1, W, R); None for a single hypothesis, which sees every row.

        With `has_padding` there may be rows that no hypothesis sees.
        """
        sees_all = ancestors.shape[1] == 1 and not has_padding
        return None if sees_all else ancestors[:, None]

    def close(self, ancestors: KerasTensor, layers: list) -> tuple[KerasTensor, GrowingCache]:
        """The cache with the keys and values that a step has returned."""
        return ancestors, self._replace(layers=layers)

    def _compact(self, ancestors: KerasTensor) -> tuple[KerasTensor, GrowingCache]:
        """Keeps the rows with a descendant; as many as the sentence with the most has."""
        alive = ops.any(ancestors, axis=1)  # (B, R)
        count = ops.max(ops.sum(ops.cast(alive, "int32"), axis=1))
        rows = ops.arange(ops.shape(alive)[1], dtype="int32")
        last = ops.where(alive, rows, rows + ops.shape(alive)[1])  # the others after all alive
        kept = ops.argsort(last, axis=1)[:, :count]  # (B, R')
        layers = [KeyValue(*(_pick_rows(field, kept) for field in layer)) for layer in self.layers]
        rows = _pick_rows(self.rows[:, None], kept)[:, 0]
        return _pick_rows(ancestors, kept), GrowingCache(layers, rows)


class StaticCache(NamedTuple):
    """A cache of fixed size, as XLA and JAX need it; rows are written one step after the other.

    After the last free row comes the first again: a cache with fewer rows than a search has steps
    keeps those of the latest steps.
    """

    layers: list[StaticKeyValue]  # per layer: keys (B·H, K, R), values (B·H, R, K)

    @classmethod
    def empty(cls, source: KerasTensor, num_layers: int, layer: LayerSize, rows) -> StaticCache:
        """A cache of `rows` free rows for the sentences of `source`, int (B, S)."""
        empty = KeyValue(*layer.zeros(ops.shape(source)[0], rows))
        return cls([StaticKeyValue.of(empty) for _ in range(num_layers)])

    @classmethod
    def of_prompt(cls, layers: list[KeyValue], batch) -> StaticCache:
        """A cache with keys and values (B, H, P, K) of a prompt's columns and no free rows."""
        return cls(list(map(StaticKeyValue.of, layers)))

    def share(
        self, batch, beam_size: int, visible: KerasTensor | None = None
    ) -> tuple[KerasTensor, StaticCache]:
        """The first ancestor mask (B, W, R): `visible`, bool (B, 1, R), or no row."""
        shape = (batch, beam_size, ops.shape(self.layers[0].value)[1])
        return _first_ancestors(shape, visible), self

    def positions(
        self, beam_size: int, filled: int | KerasTensor = 0, index: KerasTensor | None = None
    ) -> KerasTensor:
        """The position of each row, int32 (1, R), at step `index`; rows not yet written have any.

        Without `index`, as if each row had been written once.
        """
        count = ops.shape(self.layers[0].value)[1]
        rows = ops.arange(count, dtype="int32") - filled
        steps = rows // beam_size
        if index is not None:  # the latest step that has written a row
            steps = index - (index - steps) % ((count - filled) // beam_size)
        return (filled + ops.where(rows < 0, rows, steps))[None]

    def forget(self, ancestors: KerasTensor, oldest: KerasTensor) -> tuple[KerasTensor, Any]:
        """The same: later steps write over the rows of the earliest ones."""
        return ancestors, self

    def open(
        self, ancestors: KerasTensor, index: KerasTensor, filled: int | KerasTensor = 0
    ) -> tuple[KerasTensor, StaticCache]:
        """Ancestor mask (B, W, R) and cache for step `index`, at position `filled + index`."""
        batch, beam_size, _ = ops.shape(ancestors)
        own_rows = ops.broadcast_to(ops.eye(beam_size, dtype="bool"), (batch, *[beam_size] * 2))
        rows = ops.shape(self.layers[0].value)[1]
        start = (index * beam_size) % (rows - filled) + filled
        layers = [layer._replace(start=start) for layer in self.layers]
        return ops.slice_update(ancestors, (0, 0, start), own_rows), StaticCache(layers)

    def mask(self, ancestors: KerasTensor, has_padding: bool = False) -> KerasTensor:
        """The attention mask (B, 1, W, R), which also hides the free rows."""
        return ancestors[:, None]

    def close(self, ancestors: KerasTensor, layers: list) -> tuple[KerasTensor, StaticCache]:
        """The cache with the keys and values that a step has returned."""
        return ancestors, self._replace(layers=layers)

    def resize(self, ancestors: KerasTensor, rows) -> tuple[KerasTensor, StaticCache]:
        """Ancestor mask and cache with a capacity of `rows` rows."""
        layers = [
            StaticKeyValue(_pad(key, rows, 2), _pad(value, rows, 1), start)
            for key, value, start in self.layers
        ]
        return _pad(ancestors, rows, 2), StaticCache(layers)


def _first_ancestors(shape: tuple, visible: KerasTensor | None) -> KerasTensor:
    """An ancestor mask of a shape (B, W, R)."""
    return ops.zeros(shape, "bool") if visible is None else ops.broadcast_to(visible, shape)


def _pad(x: KerasTensor, size, axis: int) -> KerasTensor:
    """`x` with zeros after it, up to a size along an axis."""
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)


def _pick_rows(values: KerasTensor, rows: KerasTensor) -> KerasTensor:
    """values[b, x, rows[b, r]]: (B, X, R, ...) by (B, R') to (B, X, R', ...)."""
    batch, groups, count, *rest = ops.shape(values)
    starts = ops.arange(batch * groups, dtype="int32") * count
    flat = ops.reshape(starts, (batch, groups, 1)) + ops.cast(rows, "int32")[:, None]
    return ops.take(ops.reshape(values, (-1, *rest)), flat, axis=0)
