"""Multi-head attention (paper section 3.2.2)."""

from typing import Any, ClassVar

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.heads import HeadProjection, concatenate_heads
from tf_transformer.layers.masks import require_mask
from tf_transformer.layers.outputs import Attended
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.stored import KeyValue, Stored


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(ConfiguredLayer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V), equation 1 (`kernels/attention.py`). Matrices
    that multiply the same input share one variable and one product: W^Q W^K W^V in self-attention,
    W^K W^V in cross-attention. The first call decides which of the two kinds the layer is.

    Args:
        config: the configuration of the stack, or its fields as a dict. The layer reads `num_heads`
            (paper: h), `key_dim` (d_k), `value_dim` (d_v), `num_key_value_heads`, `attention_bias`
            (short: `use_bias`) and `attention_dropout_rate` (short: `dropout_rate`).
        **options: see `ConfiguredLayer`.

    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, D), the source of keys and values; `query` when None
            (self-attention).
        attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend. A mask
            (B, T, S) needs an axis of heads, `mask[:, None]`. The layer ignores the implicit masks
            of Keras.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D). `run` returns `Attended`, with the attention weights.

    Raises:
        ValueError: if a layer for self-attention is called with a value, or the reverse; if
            `attention_mask` is not a mask, such as a key in the place where Keras has it.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=4)
        >>> layer(np.ones((3, 5, 8), "float32"), attention_mask=causal_mask(5)).shape
        TensorShape([3, 5, 8])
    """

    reads: ClassVar = frozenset(
        {
            *("num_heads", "key_dim", "value_dim", "num_key_value_heads"),
            *("attention_bias", "attention_dropout_rate"),
            "d_model",  # for the defaults of `key_dim` and `value_dim`
        }
    )
    short_names: ClassVar = {"use_bias": "attention_bias", "dropout_rate": "attention_dropout_rate"}

    def __init__(self, config: Config = None, **options: Any):
        super().__init__(config, **options)
        self._fill = [keras.initializers.GlorotUniform() for _ in range(3)]
        self.dropout = Dropout(self.config.attention_dropout_rate, dtype=self.dtype_policy)

    def build(self, query_shape: Shape, value_shape: Shape | None = None) -> None:
        config, fill = self.config, self._fill
        heads, groups = config.num_heads, config.num_key_value_heads
        sizes = [(heads, config.key_dim), (groups, config.key_dim), (groups, config.value_dim)]
        self.is_self_attention = value_shape is None
        if value_shape is None:
            self.projection = self._built("query_key_value", query_shape, sizes, fill)
        else:
            self.query_projection = self._built("query", query_shape, sizes[:1], fill[:1])
            self.key_value_projection = self._built("key_value", value_shape, sizes[1:], fill[1:])
        concatenated = (*query_shape[:-1], heads * config.value_dim)
        size, of_output = [(1, query_shape[-1])], [keras.initializers.GlorotUniform()]
        self.output_projection = self._built("output", concatenated, size, of_output)

    def _built(self, name: str, input_shape: Shape, sizes: list, fill: list) -> HeadProjection:
        options = {"use_bias": self.config.attention_bias, "dtype": self.dtype_policy}
        projection = HeadProjection(sizes, fill, name=name, **options)
        projection.build(input_shape)
        return projection

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
        """Like a call, but also returns the attention weights and the keys and values."""
        if (value is None) != self.is_self_attention:
            built, called = ("self", "cross") if self.is_self_attention else ("cross", "self")
            raise ValueError(
                f"{self.name} was built for {built}-attention, but is called for "
                f"{called}-attention. Use one layer for each of them."
            )
        keys = query if value is None else value
        require_mask("attention_mask", attention_mask, query, keys, self.config.num_heads)
        if value is None:
            heads, stored = self.project(query)
        else:
            heads, stored = self.queries(query), self.keys_values(value)
        return self.attend(heads, stored, attention_mask, training=training)

    def project(self, x: KerasTensor) -> tuple[KerasTensor, KeyValue]:
        """Self-attention: (B, T, D) to queries (B, H, T, K), keys and values (B, G, T, K)."""
        query, key, value = self.projection.heads(x)
        return query, KeyValue(key, value)

    def queries(self, x: KerasTensor) -> KerasTensor:
        """Cross-attention: (B, T, D) to queries (B, H, T, K)."""
        return self.query_projection.heads(x)[0]

    def keys_values(self, value: KerasTensor) -> KeyValue:
        """Cross-attention: (B, S, D) to keys and values (B, G, S, K)."""
        return KeyValue(*self.key_value_projection.heads(value))

    def attend(
        self,
        query: KerasTensor,
        stored: Stored,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Attends with queries (B, H, T, K) to the keys and values of S positions.

        Mask and bias broadcast to (B, H, T, S). The bias is added to the scores.
        """
        heads, weights = stored.weighted(query, mask, bias, self.dropout.function(training))
        return Attended(self.concatenate(heads), weights, stored)

    def concatenate(self, heads: KerasTensor) -> KerasTensor:
        """Concat(head₁ … head_H) Wᴼ: (B, H, T, K) to (B, T, D)."""
        output = self.output_projection(concatenate_heads(heads))  # (B·T, D)
        return ops.reshape(output, (-1, ops.shape(heads)[2], output.shape[-1]))
