"""Scaled dot-product and multi-head attention (paper section 3.2)."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import times_transposed
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.rows import from_rows, to_rows

# Differs from the paper: its −∞ (section 3.2.3) is finite here, so that a query with
# nothing to attend to gets the mean of the values, not NaN.
MASKED_SCORE = -1e9

# Where `attend_by_sums` stops paying, measured on two cores with AVX-512.
MOST_MULTIPLICATIONS_BY_SUMS = 2**17
MOST_QUERIES_BY_SUMS = 8


class KeyValue(NamedTuple):
    """Projected keys and values, ready to be attended to (and to be cached)."""

    key: KerasTensor  # (B, H, S, K)
    value: KerasTensor  # (B, H, S, K)


class Folded(NamedTuple):
    """The keys and values of one sentence's memory, W^Q and W^O multiplied in."""

    key: KerasTensor  # (D, H·S)
    value: KerasTensor  # (H·S, D)


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
    scores = times_transposed(_scaled(query), key)  # (B, H, T, S)
    return _masked_softmax(scores, mask)


def _scaled(query: KerasTensor) -> KerasTensor:
    return query * (1.0 / math.sqrt(query.shape[-1]))


def _masked_softmax_by_sums(
    scores: KerasTensor, mask: KerasTensor | None, axis: int
) -> KerasTensor:
    """`_masked_softmax` of few scores, over an axis, in operations that start fast."""
    visible = _masked(scores, mask)
    exponentials = ops.exp(visible - ops.max(visible, axis=axis, keepdims=True))
    return ops.cast(exponentials / ops.sum(exponentials, axis=axis, keepdims=True), scores.dtype)


def _masked_softmax(scores: KerasTensor, mask: KerasTensor | None) -> KerasTensor:
    """The softmax of scores (B, H, T, S) over what the mask shows, computed in float32."""
    return ops.cast(ops.softmax(_masked(scores, mask), axis=-1), scores.dtype)


def _masked(scores: KerasTensor, mask: KerasTensor | None) -> KerasTensor:
    """Scores in float32, `MASKED_SCORE` where the mask hides."""
    scores = ops.cast(scores, "float32")
    return scores if mask is None else ops.where(mask, scores, MASKED_SCORE)


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
    return ops.matmul(weights, value)


def attend_by_sums(
    query: KerasTensor, key: KerasTensor, value: KerasTensor, mask: KerasTensor | None = None
) -> KerasTensor:
    """`scaled_dot_product_attention` of few queries to few keys, without matrix products.

    oneDNN shares even the smallest batch of products, and each softmax, among threads; that takes
    up to ten times as long as multiplying and adding up one query after the other.

    Args:
        query: float tensor (B, H, T, K), T known.
        key: float tensor (B, H, S, K).
        value: float tensor (B, H, S, K).
        mask: bool tensor (B, 1, T or 1, S).

    Returns:
        float tensor (B, H, T, K).
    """
    query = _scaled(query)
    heads = []
    for t in range(query.shape[2]):
        scores = ops.sum(query[:, :, t : t + 1] * key, axis=-1, keepdims=True)  # (B, H, S, 1)
        row = None
        if mask is not None:
            row = mask[:, :, t if mask.shape[2] != 1 else 0, :, None]  # (B, 1, S, 1)
        weights = _masked_softmax_by_sums(scores, row, axis=2)
        heads.append(ops.sum(weights * value, axis=2, keepdims=True))
    return ops.concatenate(heads, axis=2) if len(heads) > 1 else heads[0]


def lay_out(key_value: KeyValue) -> KeyValue:
    """Keys and values (B, H, S, K) as XLA multiplies with them: (B·H, K, S) and (B·H, S, K).

    XLA merges the axes of a product's batch. Merged in the cache already, rows are written to it
    in place; else the whole cache is copied, twice a step. And on a CPU the product of many queries
    with keys that lie transposed takes a third of the time.
    """
    key, value = (ops.reshape(x, (-1, *ops.shape(x)[2:])) for x in key_value)
    return KeyValue(ops.transpose(key, (0, 2, 1)), value)


def laid_out_weights(
    query: KerasTensor, key: KerasTensor, mask: KerasTensor | None = None
) -> KerasTensor:
    """`attention_weights` for keys (B·H, K, S) that are laid out."""
    _, heads, length, size = query.shape
    scores = ops.matmul(ops.reshape(_scaled(query), (-1, length, size)), key)
    return _masked_softmax(ops.reshape(scores, (-1, heads, length, ops.shape(key)[2])), mask)


class SideBySide(keras.initializers.Initializer):
    """Fills matrices that lie side by side in one variable, each as if it stood alone.

    Args:
        sizes: columns of each matrix.
        initializers: one a matrix.
    """

    def __init__(
        self, sizes: Sequence[int], initializers: Sequence[keras.initializers.Initializer]
    ):
        self.sizes = sizes
        self.initializers = initializers

    def __call__(self, shape, dtype=None):
        blocks = zip(self.sizes, self.initializers, strict=True)
        return ops.concatenate([fill((shape[0], size), dtype) for size, fill in blocks], axis=1)


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V). The layer works in two named steps,
    `project*` and `attend`, and cached decoding uses the same two: keys and values that were
    projected once can be attended to many times.

    Matrices that multiply the same input lie side by side in one variable, so that they cost one
    product: W^Q W^K W^V in self-attention, W^K W^V in cross-attention. Which of the two a layer
    is, its first call or `build` settles.

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
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.use_bias = use_bias
        self.dropout_rate = dropout_rate
        # Glorot's fans are those of each (D, H·K) matrix by itself.
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
        keys, values = self.num_heads * self.key_dim, self.num_heads * self.value_dim
        self.is_self_attention = value_shape is None
        if self.is_self_attention:
            fill = SideBySide(
                (keys, keys, values), (self._fill_query, self._fill_key, self._fill_value)
            )
            self.projection = self._projection(
                "query_key_value", query_shape, 2 * keys + values, fill
            )
        else:
            self.query_projection = self._projection("query", query_shape, keys, self._fill_query)
            fill = SideBySide((keys, values), (self._fill_key, self._fill_value))
            self.key_value_projection = self._projection(
                "key_value", value_shape, keys + values, fill
            )
        self.output_projection = self._projection(
            "output", (*query_shape[:-1], values), query_shape[-1], "glorot_uniform"
        )

    def _by_head(
        self, rows: KerasTensor, like: KerasTensor, sizes: Sequence[int]
    ) -> list[KerasTensor]:
        """Matrices that lie side by side in rows (B·T, Σ H·K), each by head, (B, H, T, K).

        `sizes` has a K a matrix; T is that of `like` (B, T, D). Equal ones are moved all at once.
        The axes are moved by `einsum`, which TensorFlow does in a seventh of the time that
        oneDNN's transposition takes to start.
        """
        length, heads = ops.shape(like)[1], self.num_heads
        if len(set(sizes)) == 1 and like.shape[1] != 1:
            together = ops.reshape(rows, (-1, length, len(sizes), heads, sizes[0]))
            return ops.unstack(ops.einsum("btnhk->nbhtk", together), len(sizes))
        ends = [heads * sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
        parts = ops.split(rows, ends, axis=-1) if ends else [rows]
        if like.shape[1] == 1:  # nothing to move
            return [ops.reshape(part, (-1, heads, 1, part.shape[-1] // heads)) for part in parts]
        parts = [ops.reshape(part, (-1, length, heads, part.shape[-1] // heads)) for part in parts]
        return [ops.einsum("bthk->bhtk", part) for part in parts]

    def project(self, x: KerasTensor) -> tuple[KerasTensor, KeyValue]:
        """Self-attention's queries, keys and values of (B, T, D), each (B, H, T, K)."""
        rows = self.projection(to_rows(x))
        query, *key_value = self._by_head(rows, x, (self.key_dim, self.key_dim, self.value_dim))
        return query, KeyValue(*key_value)

    def project_query(self, query: KerasTensor) -> KerasTensor:
        """Cross-attention's queries: (B, T, D) to (B, H, T, K)."""
        return self._by_head(self.query_projection(to_rows(query)), query, (self.key_dim,))[0]

    def project_key_value(self, value: KerasTensor) -> KeyValue:
        """Cross-attention's keys and values: (B, S, D) to (B, H, S, K) each."""
        rows = self.key_value_projection(to_rows(value))
        return KeyValue(*self._by_head(rows, value, (self.key_dim, self.value_dim)))

    def attend(
        self,
        query: KerasTensor,
        key_value: KeyValue,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Attends with projected queries to projected keys and values.

        Args:
            query: float tensor (B, H, T, K).
            key_value: keys and values (B, H, S, K).
            attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
            training: whether dropout is on.

        Returns:
            float tensor (B, T, D).
        """
        weights = attention_weights(query, key_value.key, attention_mask)  # (B, H, T, S)
        weights = self.dropout(weights, training=training)
        return self._concatenate(ops.matmul(weights, key_value.value))

    def attend_laid_out(
        self,
        query: KerasTensor,
        key_value: KeyValue,
        attention_mask: KerasTensor | None = None,
    ) -> KerasTensor:
        """`attend` to what `lay_out` gave; the number of queries is known."""
        weights = laid_out_weights(query, key_value.key, attention_mask)  # (B, H, T, S)
        weights = ops.reshape(weights, (-1, *ops.shape(weights)[2:]))
        heads = ops.matmul(weights, key_value.value)  # (B·H, T, K)
        return self._concatenate(ops.reshape(heads, (-1, self.num_heads, *ops.shape(heads)[1:])))

    def attend_in_step(
        self,
        query: KerasTensor,
        key_value: KeyValue,
        attention_mask: KerasTensor | None = None,
    ) -> KerasTensor:
        """`attend` as a search needs it: few queries, in whichever way is faster for them."""

        def by_sums():
            return attend_by_sums(query, *key_value, attention_mask)

        def by_products():
            return scaled_dot_product_attention(query, *key_value, attention_mask)

        if query.shape[2] is None or query.shape[2] > MOST_QUERIES_BY_SUMS:
            return self._concatenate(by_products())
        multiplications = ops.size(key_value.key) * query.shape[2]
        few = multiplications <= MOST_MULTIPLICATIONS_BY_SUMS
        return self._concatenate(ops.cond(few, by_sums, by_products))

    def fold(self, key_value: KeyValue) -> Folded:
        """Cross-attention's W^Q and W^O multiplied into the keys and values of one sentence.

        Scores are (x W^Q) Kᵀ = x (W^Q Kᵀ), and of weights A the output is (A V) W^O = A (V W^O).
        Fewer source tokens than a head is large make these products smaller than W^Q and W^O, which
        a step of one sentence spends its time on reading.

        Args:
            key_value: keys and values (1, H, S, K).

        Raises:
            ValueError: when the layer has biases, which would have to be added in between.
        """
        if self.use_bias:
            raise ValueError(
                f"{self.name} has biases, so its memory cannot be folded: attend to it as it is."
            )
        query, output = (
            ops.cast(projection.kernel, self.compute_dtype)
            for projection in (self.query_projection, self.output_projection)
        )
        key, value = (x[0] for x in key_value)  # (H, S, K)
        by_head = ops.reshape(query, (-1, self.num_heads, self.key_dim))
        key = ops.einsum("dhk,hsk->dhs", _scaled(by_head), key)
        by_head = ops.reshape(output, (self.num_heads, self.value_dim, -1))
        value = ops.einsum("hsk,hkd->hsd", value, by_head)
        return Folded(
            ops.reshape(key, (query.shape[0], -1)), ops.reshape(value, (-1, output.shape[1]))
        )

    def attend_folded(
        self, x: KerasTensor, memory: Folded, attention_mask: KerasTensor
    ) -> KerasTensor:
        """Cross-attention to what `fold` gave.

        Args:
            x: float tensor (1, T, D), T known.
            memory: of S source tokens.
            attention_mask: bool tensor (1, 1, 1, S), True = may attend.

        Returns:
            float tensor (1, T, D).
        """
        heads, columns = self.num_heads, ops.shape(memory.key)[1]
        scores = ops.matmul(to_rows(x), memory.key)  # (T, H·S)
        scores = ops.reshape(scores, (-1, x.shape[1], heads, columns // heads))  # (1, T, H, S)
        weights = _masked_softmax_by_sums(scores, attention_mask, axis=3)
        weights = ops.reshape(weights, (-1, columns))
        return from_rows(ops.matmul(weights, memory.value), like=x)

    def _concatenate(self, heads: KerasTensor) -> KerasTensor:
        """Heads (B, H, T, K), side by side and projected: (B, T, D)."""
        length, size = ops.shape(heads)[2], self.num_heads * self.value_dim
        if heads.shape[2] != 1:
            heads = ops.einsum("bhtk->bthk", heads)
        output = self.output_projection(ops.reshape(heads, (-1, size)))  # (B·T, D)
        return ops.reshape(output, (-1, length, output.shape[-1]))

    def call(
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        if (value is None) != self.is_self_attention:
            built, called = ("self", "cross") if self.is_self_attention else ("cross", "self")
            raise ValueError(
                f"{self.name} was built for {built}-attention and is called for "
                f"{called}-attention. Use a layer of its own for each."
            )
        if value is None:
            projected, key_value = self.project(query)
        else:
            projected, key_value = self.project_query(query), self.project_key_value(value)
        return self.attend(projected, key_value, attention_mask, training=training)

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
