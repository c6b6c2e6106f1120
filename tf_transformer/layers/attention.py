"""Multi-head attention (paper section 3.2.2)."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.cache import Attended, KeyValue, StaticKeyValue
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.layers.initializers import ConcatenatedInitializer
from tf_transformer.layers.pattern import Pattern
from tf_transformer.layers.position_encoding import Positions


class HeadGroups:
    """The H heads of queries in G groups, each of which shares one head of keys and values.

    The queries of a group are those of one head with H / G times as many positions, so no key and
    no value is repeated. With H = G nothing changes.

    Args:
        query: float tensor (B, H, T, K).
        count: G.
    """

    def __init__(self, query: KerasTensor, count: int):
        _, self.heads, self.length, _ = ops.shape(query)
        self.count = count

    def join(self, x: KerasTensor | None) -> KerasTensor | None:
        """Queries, mask or bias (B, H or 1, T or 1, N) to (B, G or 1, H/G·T or 1, N)."""
        if x is None or self.count == self.heads:
            return x
        while len(x.shape) < 4:
            x = x[None]
        if x.shape[1] == 1:
            return x if x.shape[2] == 1 else ops.tile(x, (1, 1, self.heads // self.count, 1))
        batch, heads, _, size = ops.shape(x)
        if x.shape[2] == 1:
            x = ops.broadcast_to(x, (batch, heads, self.length, size))
        rows = self.heads // self.count * self.length
        return ops.reshape(x, (-1, self.count, rows, size))

    def split(self, x: KerasTensor) -> KerasTensor:
        """The inverse: (B, G, H/G·T, N) to (B, H, T, N)."""
        if self.count == self.heads:
            return x
        return ops.reshape(x, (-1, self.heads, self.length, ops.shape(x)[-1]))


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V). The layer works in two steps, `project*` and
    `attend`. Training, cached decoding and functions for XLA use the same two; they differ in the
    layout of keys and values (`layers/cache.py`).

    Matrices that multiply the same input are concatenated in one variable, so that they cost one
    product: W^Q W^K W^V in self-attention, W^K W^V in cross-attention. The first call, or `build`,
    makes the layer one of the two.

    Args:
        num_heads: number of heads, H (paper: h).
        key_dim: size of a head's queries and keys, K (paper: d_k).
        value_dim: size of a head's values (paper: d_v); `key_dim` when None.
        use_bias: whether the four projections have biases. The paper has none.
        dropout_rate: dropout on the attention weights (an option; the paper has none).
        num_key_value_heads: number of heads of keys and values, G; `num_heads` when None. Fewer is
            grouped-query attention (Ainslie et al. 2023): H / G heads of queries share one head of
            keys and values, and a cache holds G heads.
        pattern: which positions self-attention attends to; all when None. The masks of another
            pattern hide keys only, (B, 1, 1, T).

    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, D), the source of keys and values; `query` when None
            (self-attention).
        attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D), D being the size of `query`'s last axis. `run` has the same
        arguments and returns `Attended`, with the attention weights.

    Raises:
        ValueError: when a layer built for self-attention is called with a value, or the reverse.

    Masks are explicit: an implicit Keras mask on an input is neither read nor passed on.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=4)
        >>> layer(np.ones((3, 5, 8), "float32"), attention_mask=causal_mask(5)).shape
        TensorShape([3, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        use_bias: bool = False,
        dropout_rate: float = 0.0,
        num_key_value_heads: int | None = None,
        pattern: Pattern | dict | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.num_key_value_heads = num_key_value_heads or num_heads
        if num_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_heads ({num_heads}) must be a multiple of num_key_value_heads "
                f"({num_key_value_heads})."
            )
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.use_bias = use_bias
        self.dropout_rate = dropout_rate
        if isinstance(pattern, dict):  # as in `get_config`
            pattern = keras.saving.deserialize_keras_object(pattern)
        self.pattern: Any = pattern or Pattern()
        # Glorot's fans are those of each (D, H·K) matrix alone.
        self._fill_query, self._fill_key, self._fill_value = (
            keras.initializers.GlorotUniform() for _ in range(3)
        )
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)

    def _projection(self, name: str, input_shape, size: int, initializer) -> keras.layers.Dense:
        dense = keras.layers.Dense(
            size,
            use_bias=self.use_bias,
            kernel_initializer=initializer,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(input_shape)
        return dense

    def build(self, query_shape, value_shape=None):
        queries, concatenated = self.num_heads * self.key_dim, self.num_heads * self.value_dim
        keys, values = (self.num_key_value_heads * size for size in (self.key_dim, self.value_dim))
        self.is_self_attention = value_shape is None
        if self.is_self_attention:
            fill = ConcatenatedInitializer(
                (queries, keys, values), (self._fill_query, self._fill_key, self._fill_value)
            )
            self.projection = self._projection(
                "query_key_value", query_shape, queries + keys + values, fill
            )
        else:
            self.query_projection = self._projection(
                "query", query_shape, queries, self._fill_query
            )
            fill = ConcatenatedInitializer((keys, values), (self._fill_key, self._fill_value))
            self.key_value_projection = self._projection(
                "key_value", value_shape, keys + values, fill
            )
        self.output_projection = self._projection(
            "output", (*query_shape[:-1], concatenated), query_shape[-1], "glorot_uniform"
        )

    def call(
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.run(query, value, attention_mask, training).output

    def run(
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        """A call that returns the attention weights and the keys and values, too."""
        if (value is None) != self.is_self_attention:
            built, called = ("self", "cross") if self.is_self_attention else ("cross", "self")
            raise ValueError(
                f"{self.name} was built for {built}-attention and is called for "
                f"{called}-attention. Use one layer for each."
            )
        if value is None:
            return self.self_attend(query, attention_mask, training=training)
        key_value = self.project_key_value(value)
        return key_value.cross_attend(self, query, attention_mask, training)

    def self_attend(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        positions: Positions | None = None,
        cache: KeyValue | StaticKeyValue | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Self-attention of x (B, T, D), and of a cache of earlier positions if there is one.

        Args:
            x: float tensor (B, T, D).
            attention_mask: bool tensor that broadcasts to (B, H, T, S), S with the cache.
            positions: of the queries and keys, for an encoding that acts on scores.
            cache: keys and values of earlier positions.
            training: whether dropout is on.
        """
        query, new = self.project(x)
        if self.pattern.handles(cache):
            found = self.pattern.attend(
                query, new, attention_mask, positions, cache, self._dropout(training)
            )
            return Attended(self._concatenate(found.heads), found.weights, found.cache)
        bias = None
        if positions is not None:
            query, new = positions.rotate(query), new._replace(key=positions.rotate(new.key))
            bias = positions.bias(query)
        key_value = new if cache is None else cache.append(new)
        return self.attend(query, key_value, attention_mask, bias, training)

    def attend(
        self,
        query: KerasTensor,
        key_value: KeyValue | StaticKeyValue,
        attention_mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Attends with projected queries to projected keys and values in any layout.

        Args:
            query: float tensor (B, H, T, K).
            key_value: keys and values of S positions, with G heads.
            attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
            bias: float tensor that broadcasts to (B, H, T, S), added to the scores.
            training: whether dropout is on.
        """
        dropout = self._dropout(training)
        groups = HeadGroups(query, self.num_key_value_heads)
        query, mask, bias = map(groups.join, (query, attention_mask, bias))
        heads, weights = key_value.attend(query, mask, bias, dropout)
        return Attended(self._concatenate(groups.split(heads)), groups.split(weights), key_value)

    def _dropout(self, training: bool | None) -> Callable | None:
        """Dropout on attention weights; None when it is off."""
        if not (training and self.dropout_rate):
            return None
        return functools.partial(self.dropout.__call__, training=training)

    def project(self, x: KerasTensor) -> tuple[KerasTensor, KeyValue]:
        """Self-attention's queries (B, H, T, K), keys and values (B, G, T, K) of (B, T, D)."""
        rows = self.projection(flatten_positions(x))
        query, key, value = self._split_heads(rows, x, (self._queries, *self._keys_and_values))
        return query, KeyValue(key, value)

    def project_query(self, query: KerasTensor) -> KerasTensor:
        """Cross-attention's queries: (B, T, D) to (B, H, T, K)."""
        rows = self.query_projection(flatten_positions(query))
        return self._split_heads(rows, query, (self._queries,))[0]

    def project_key_value(self, value: KerasTensor) -> KeyValue:
        """Cross-attention's keys and values: (B, S, D) to (B, G, S, K) each."""
        rows = self.key_value_projection(flatten_positions(value))
        return KeyValue(*self._split_heads(rows, value, self._keys_and_values))

    @property
    def _queries(self) -> tuple[int, int]:
        """Number of heads and size of a head."""
        return self.num_heads, self.key_dim

    @property
    def _keys_and_values(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Number of heads and size of a head, each."""
        count = self.num_key_value_heads
        return (count, self.key_dim), (count, self.value_dim)

    def _split_heads(
        self, rows: KerasTensor, like: KerasTensor, sizes: Sequence[tuple[int, int]]
    ) -> list[KerasTensor]:
        """Splits concatenated matrices (B·T, Σ H·K) by head: (B, H, T, K) each.

        `sizes` has H and K of each matrix; T is that of `like` (B, T, D). Matrices of equal size
        are moved together, by `einsum`: TensorFlow starts it in a seventh of the time that oneDNN's
        transposition takes.
        """
        length = ops.shape(like)[1]
        if len(set(sizes)) == 1 and like.shape[1] != 1:
            together = ops.reshape(rows, (-1, length, len(sizes), *sizes[0]))
            return ops.unstack(ops.einsum("btnhk->nbhtk", together), len(sizes))
        ends = list(itertools.accumulate(heads * size for heads, size in sizes))[:-1]
        parts = zip(ops.split(rows, ends, axis=-1) if ends else [rows], sizes, strict=True)
        if like.shape[1] == 1:  # nothing to move
            return [ops.reshape(part, (-1, heads, 1, size)) for part, (heads, size) in parts]
        by_position = [ops.reshape(part, (-1, length, *of_head)) for part, of_head in parts]
        return [ops.einsum("bthk->bhtk", part) for part in by_position]

    def _concatenate(self, heads: KerasTensor) -> KerasTensor:
        """Heads (B, H, T, K), concatenated and projected: (B, T, D)."""
        length, size = ops.shape(heads)[2], self.num_heads * self.value_dim
        if heads.shape[2] != 1:
            heads = ops.einsum("bhtk->bthk", heads)
        output = self.output_projection(ops.reshape(heads, (-1, size)))  # (B·T, D)
        return ops.reshape(output, (-1, length, output.shape[-1]))

    def compute_output_shape(self, query_shape, value_shape=None):
        return query_shape

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "dropout_rate": self.dropout_rate,
            "num_key_value_heads": self.num_key_value_heads,
            "pattern": keras.saving.serialize_keras_object(self.pattern),
        }
