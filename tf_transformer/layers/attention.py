"""Multi-head attention (paper section 3.2.2)."""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.attention import Dropout as DropoutFunction
from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.layers.heads import concatenate_heads, split_heads
from tf_transformer.layers.initializers import ConcatenatedInitializer
from tf_transformer.layers.stored import KeyValue, Stored


class Attended(NamedTuple):
    """The result of an attention layer."""

    output: KerasTensor  # (B, T, D)
    weights: KerasTensor | tuple  # (B, H, T, S), before dropout; rows sum to 1
    stored: Stored  # the keys and values attended to


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(ConfiguredLayer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V), which is equation 1 of the paper
    (`kernels/attention.py`). The layer projects, then attends; cached decoding calls the two steps
    with keys and values of earlier positions.

    Matrices that multiply the same input are concatenated in one variable, so that they cost one
    product: W^Q W^K W^V in self-attention, W^K W^V in cross-attention. The first call, or `build`,
    makes the layer one of the two.

    Args:
        config: the configuration of the stack, or its fields by name. The layer reads `num_heads`
            (paper: h), `key_dim` (d_k), `value_dim` (d_v), `num_key_value_heads`, and the options
            `attention_bias` and `attention_dropout_rate`, which the paper has not. Their short
            names are `use_bias` and `dropout_rate`.
        **options: see `ConfiguredLayer`.

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

    short_names: ClassVar = {"use_bias": "attention_bias", "dropout_rate": "attention_dropout_rate"}

    def __init__(self, config: Config = None, **options: Any):
        super().__init__(config, **options)
        config, groups = self.config, self.config.num_key_value_heads
        # Number of heads and size of a head; fewer heads of keys and values are shared.
        self._queries = (config.num_heads, config.key_dim)
        self._keys_values = [(groups, config.key_dim), (groups, config.value_dim)]
        # Glorot's fans are those of each (D, H·K) matrix alone.
        self._fill = [keras.initializers.GlorotUniform() for _ in range(3)]
        self.dropout = Dropout(config.attention_dropout_rate, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape=None):
        self.is_self_attention = value_shape is None
        if self.is_self_attention:
            self.projection = self._concatenated(
                "query_key_value", query_shape, [self._queries, *self._keys_values], self._fill
            )
        else:
            self.query_projection = self._concatenated(
                "query", query_shape, [self._queries], self._fill[:1]
            )
            self.key_value_projection = self._concatenated(
                "key_value", value_shape, self._keys_values, self._fill[1:]
            )
        heads = self.config.num_heads * self.config.value_dim
        self.output_projection = self._projection(
            "output", (*query_shape[:-1], heads), query_shape[-1], "glorot_uniform"
        )

    def _concatenated(
        self, name: str, input_shape: Sequence, sizes: Sequence[tuple[int, int]], fill: list
    ) -> keras.layers.Dense:
        """One product for matrices (D, H·K) with the same input."""
        columns = [heads * size for heads, size in sizes]
        initializer = fill[0] if len(fill) == 1 else ConcatenatedInitializer(columns, fill)
        return self._projection(name, input_shape, sum(columns), initializer)

    def _projection(
        self, name: str, input_shape: Sequence, size: int, initializer: Any
    ) -> keras.layers.Dense:
        dense = keras.layers.Dense(
            size,
            use_bias=self.config.attention_bias,
            kernel_initializer=initializer,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(input_shape)
        return dense

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
            heads, stored = self.project(query)
        else:
            heads, stored = self.queries(query), self.keys_values(value)
        return self.attend(heads, stored, attention_mask, training=training)

    def project(self, x: KerasTensor) -> tuple[KerasTensor, KeyValue]:
        """Self-attention's queries (B, H, T, K), keys and values (B, G, T, K) of (B, T, D)."""
        query, key, value = self._heads(self.projection, x, [self._queries, *self._keys_values])
        return query, KeyValue(key, value)

    def queries(self, x: KerasTensor) -> KerasTensor:
        """Cross-attention's queries: (B, T, D) to (B, H, T, K)."""
        return self._heads(self.query_projection, x, [self._queries])[0]

    def keys_values(self, value: KerasTensor) -> KeyValue:
        """Cross-attention's keys and values: (B, S, D) to (B, G, S, K) each."""
        return KeyValue(*self._heads(self.key_value_projection, value, self._keys_values))

    def _heads(
        self, projection: keras.layers.Dense, x: KerasTensor, sizes: list[tuple[int, int]]
    ) -> list[KerasTensor]:
        return split_heads(projection(flatten_positions(x)), ops.shape(x)[1], sizes)

    def attend(
        self,
        query: KerasTensor,
        stored: Stored,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Attends with projected queries to projected keys and values.

        Args:
            query: float tensor (B, H, T, K).
            stored: keys and values of S positions.
            mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
            bias: float tensor that broadcasts to (B, H, T, S), added to the scores.
            training: whether dropout is on.
        """
        heads, weights = stored.weighted(query, mask, bias, self.dropout_function(training))
        return Attended(self.concatenate(heads), weights, stored)

    def concatenate(self, heads: KerasTensor) -> KerasTensor:
        """Concat(head₁ … head_H) Wᴼ: (B, H, T, K) to (B, T, D)."""
        output = self.output_projection(concatenate_heads(heads))  # (B·T, D)
        return ops.reshape(output, (-1, ops.shape(heads)[2], output.shape[-1]))

    def dropout_function(self, training: bool | None) -> DropoutFunction | None:
        """Dropout on attention weights; None when it is off."""
        if not (training and self.dropout.rate):
            return None
        return functools.partial(self.dropout.__call__, training=training)

    def compute_output_shape(self, query_shape, value_shape=None):
        return query_shape
