"""Multi-head attention (paper section 3.2.2)."""

import functools
from typing import Any, ClassVar

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.attention import Dropout as DropoutFunction
from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.layers.heads import concatenate_heads, split_heads
from tf_transformer.layers.initializers import ConcatenatedInitializer
from tf_transformer.layers.outputs import Attended
from tf_transformer.layers.stored import KeyValue, Stored


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(ConfiguredLayer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V), equation 1 (`kernels/attention.py`). Matrices
    that multiply the same input are one variable, so that they cost one product: W^Q W^K W^V in
    self-attention, W^K W^V in cross-attention. The first call makes the layer one of the two.

    Args:
        config: the configuration of the stack, or its fields by name. The layer reads `num_heads`
            (paper: h), `key_dim` (d_k), `value_dim` (d_v), `num_key_value_heads`, and two options:
            `attention_bias`, or `use_bias`, and `attention_dropout_rate`, or `dropout_rate`.
        **options: see `ConfiguredLayer`.

    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, D), the source of keys and values; `query` when None
            (self-attention).
        attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend. Implicit
            masks of Keras are neither read nor passed on.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D). `run` returns `Attended`, with the attention weights.

    Raises:
        ValueError: when a layer built for self-attention is called with a value, or the reverse.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=4)
        >>> layer(np.ones((3, 5, 8), "float32"), attention_mask=causal_mask(5)).shape
        TensorShape([3, 5, 8])
    """

    short_names: ClassVar = {"use_bias": "attention_bias", "dropout_rate": "attention_dropout_rate"}

    def __init__(self, config: Config = None, **options: Any):
        super().__init__(config, **options)
        config, groups = self.config, self.config.num_key_value_heads
        # Number of heads and size of a head. Fewer heads of keys and values are shared by queries.
        self._queries = [(config.num_heads, config.key_dim)]
        self._keys_values = [(groups, config.key_dim), (groups, config.value_dim)]
        # Glorot's fans are those of each (D, H·K) matrix alone.
        self._fill = [keras.initializers.GlorotUniform() for _ in range(3)]
        self.dropout = Dropout(config.attention_dropout_rate, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape=None):
        sizes, fill = [*self._queries, *self._keys_values], self._fill
        self.is_self_attention = value_shape is None
        if self.is_self_attention:
            self.projection = self._projection("query_key_value", query_shape, sizes, fill)
        else:
            self.query_projection = self._projection("query", query_shape, sizes[:1], fill[:1])
            self.key_value_projection = self._projection(
                "key_value", value_shape, sizes[1:], fill[1:]
            )
        heads = self.config.num_heads * self.config.value_dim
        self.output_projection = self._projection(
            *("output", (*query_shape[:-1], heads), [(1, query_shape[-1])]),
            [keras.initializers.GlorotUniform()],
        )

    def _projection(self, name: str, input_shape, sizes: list, fill: list) -> keras.layers.Dense:
        """One product for matrices (D, H·K) with the same input."""
        columns = [heads * size for heads, size in sizes]
        dense = keras.layers.Dense(
            sum(columns),
            use_bias=self.config.attention_bias,
            kernel_initializer=ConcatenatedInitializer(columns, fill) if fill[1:] else fill[0],
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
        rows = self.projection(flatten_positions(x))
        query, *new = split_heads(rows, ops.shape(x)[1], [*self._queries, *self._keys_values])
        return query, KeyValue(*new)

    def queries(self, x: KerasTensor) -> KerasTensor:
        """Cross-attention's queries: (B, T, D) to (B, H, T, K)."""
        rows = self.query_projection(flatten_positions(x))
        return split_heads(rows, ops.shape(x)[1], self._queries)[0]

    def keys_values(self, value: KerasTensor) -> KeyValue:
        """Cross-attention's keys and values: (B, S, D) to (B, G, S, K) each."""
        rows = self.key_value_projection(flatten_positions(value))
        return KeyValue(*split_heads(rows, ops.shape(value)[1], self._keys_values))

    def attend(
        self,
        query: KerasTensor,
        stored: Stored,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Attends with queries (B, H, T, K) to keys and values of S positions.

        A bias, which broadcasts to (B, H, T, S) as the mask does, is added to the scores.
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
