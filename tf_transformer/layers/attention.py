"""Scaled dot-product and multi-head attention (paper section 3.2)."""

import math
from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

# Differs from the paper: its −∞ (section 3.2.3) is finite here, so that a query with
# nothing to attend to gets the mean of the values, not NaN.
MASKED_SCORE = -1e9


class KeyValue(NamedTuple):
    """Projected keys and values, ready to be attended to (and to be cached)."""

    key: KerasTensor  # (B, H, S, K)
    value: KerasTensor  # (B, H, S, K)


def attention_weights(
    query: KerasTensor, key: KerasTensor, mask: KerasTensor | None = None
) -> KerasTensor:
    """softmax(Q Kᵀ / √K), paper equation 1 without the values.

    Args:
        query: float tensor (B, H, T, K).
        key: float tensor (B, H, S, K).
        mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.

    Returns:
        float tensor (B, H, T, S) in the dtype of `query`; rows sum to 1. The softmax runs in
        float32 whatever the inputs.
    """
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = ops.einsum("bhtk,bhsk->bhts", query * scale, key)  # (B, H, T, S)
    scores = ops.cast(scores, "float32")
    if mask is not None:
        scores = ops.where(mask, scores, MASKED_SCORE)
    return ops.cast(ops.softmax(scores, axis=-1), query.dtype)


def scaled_dot_product_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    mask: KerasTensor | None = None,
) -> KerasTensor:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √K) V (paper equation 1).

    Args:
        query: float tensor (B, H, T, K).
        key: float tensor (B, H, S, K).
        value: float tensor (B, H, S, K); its last axis may differ from the key's.
        mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.

    Returns:
        float tensor (B, H, T, K).

    Example:
        >>> x = np.ones((2, 3, 5, 7), "float32")
        >>> scaled_dot_product_attention(x, x, x).shape
        TensorShape([2, 3, 5, 7])
    """
    weights = attention_weights(query, key, mask)
    return ops.einsum("bhts,bhsk->bhtk", weights, value)


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V). The layer works in two named steps,
    `project_*` and `attend`, and cached decoding uses the same two: keys and values that were
    projected once can be attended to many times.

    Args:
        num_heads: number of heads, H (paper: h).
        key_dim: size of a head's queries and keys, K (paper: d_k).
        value_dim: size of a head's values (paper: d_v); `key_dim` when None.
        use_bias: whether the four projections have biases. The paper has none.
        dropout_rate: dropout on the attention weights (an option; the paper has none).

    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, D), the source of keys and values; `query` when None
            (self-attention).
        attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D), D being the size of `query`'s last axis.

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
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.use_bias = use_bias
        self.dropout_rate = dropout_rate
        self.query_projection = self._projection(num_heads * self.key_dim, "query")
        self.key_projection = self._projection(num_heads * self.key_dim, "key")
        self.value_projection = self._projection(num_heads * self.value_dim, "value")
        self.dropout = keras.layers.Dropout(dropout_rate, dtype=self.dtype_policy)

    def _projection(self, size: int, name: str) -> keras.layers.Dense:
        # A plain (D, H·K) matrix, so that Glorot's fans are those of the matrix product.
        return keras.layers.Dense(
            size,
            use_bias=self.use_bias,
            kernel_initializer="glorot_uniform",
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, query_shape, value_shape=None):
        value_shape = value_shape or query_shape
        self.query_projection.build(query_shape)
        self.key_projection.build(value_shape)
        self.value_projection.build(value_shape)
        self.output_projection = self._projection(query_shape[-1], "output")
        self.output_projection.build((*query_shape[:-1], self.num_heads * self.value_dim))

    def _split_heads(self, x: KerasTensor) -> KerasTensor:
        batch, length = ops.shape(x)[0], ops.shape(x)[1]
        heads = ops.reshape(x, (batch, length, self.num_heads, x.shape[-1] // self.num_heads))
        return ops.transpose(heads, (0, 2, 1, 3))  # (B, H, T, K)

    def project_query(self, query: KerasTensor) -> KerasTensor:
        """(B, T, D) to (B, H, T, K)."""
        return self._split_heads(self.query_projection(query))

    def project_key_value(self, value: KerasTensor) -> KeyValue:
        """(B, S, D) to keys and values of (B, H, S, K) each."""
        return KeyValue(
            self._split_heads(self.key_projection(value)),
            self._split_heads(self.value_projection(value)),
        )

    def attend(
        self,
        query: KerasTensor,
        key_value: KeyValue,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Attends with projected queries to projected keys and values.

        Args:
            query: float tensor (B, H, T, K), from `project_query`.
            key_value: from `project_key_value`.
            attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
            training: whether dropout is on.

        Returns:
            float tensor (B, T, D).
        """
        weights = attention_weights(query, key_value.key, attention_mask)  # (B, H, T, S)
        weights = self.dropout(weights, training=training)
        heads = ops.einsum("bhts,bhsk->bthk", weights, key_value.value)
        batch, length = ops.shape(heads)[0], ops.shape(heads)[1]
        concatenated = ops.reshape(heads, (batch, length, self.num_heads * self.value_dim))
        return self.output_projection(concatenated)  # (B, T, D)

    def call(
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        value = query if value is None else value
        return self.attend(
            self.project_query(query),
            self.project_key_value(value),
            attention_mask,
            training=training,
        )

    def compute_output_shape(self, query_shape, value_shape=None):
        return query_shape

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "dropout_rate": self.dropout_rate,
        }
