"""Multi-head attention (paper section 3.2)."""

from typing import Any, ClassVar, NamedTuple, Unpack

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.configured import (
    AttentionOptions,
    Config,
    ConfiguredLayer,
    HeadOptions,
    fields_in,
)
from tf_transformer.layers.dense import Dense, HeadProjection
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.mask_checks import require_mask
from tf_transformer.layers.masks import causal_mask, combine_masks
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.shape import Shape, size_of
from tf_transformer.layers.stored import KeyValue, Stored


class Attended(NamedTuple):
    """The result of an attention layer."""

    output: KerasTensor  # (B, T, D)
    weights: KerasTensor | tuple  # (B, H, T, S), before dropout; rows sum to 1
    stored: Stored  # the keys and values that the queries attended to


class Attention(ConfiguredLayer):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) Wᴼ (paper section 3.2.2).

    Each head is Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V), equation 1 (`kernels/attention.py`). A subclass
    says which sequences the queries, keys and values come from.

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        num_heads: number of heads (paper: h), H.
        key_dim: size of the queries and keys of a head (d_k), K.
        value_dim: size of the values of a head (d_v); None: `key_dim`.
        num_key_value_heads: number of heads of keys and values, G; None: H.
        use_bias: whether the projections have biases (`attention_bias` of the configuration).
        dropout_rate: dropout on the attention weights (`attention_dropout_rate`).
        **options: arguments of Keras' layers, such as `name` and `dtype`.
    """

    # `d_model` gives the defaults of `key_dim` and `value_dim`.
    reads: ClassVar = fields_in(HeadOptions) - {"attention_window"}

    def __init__(
        self,
        config: Config = None,
        *,
        use_bias: bool | None = None,
        dropout_rate: float | None = None,
        **options: Unpack[HeadOptions],
    ):
        fields = {"attention_bias": use_bias, "attention_dropout_rate": dropout_rate}
        # Keras must not cast float32 sums of `LinearAttention`; projections cast their inputs.
        super().__init__(config, fields, autocast=False, **options)
        # One for each of W^Q, W^K and W^V, before the seed of dropout is drawn.
        self._initializers = [keras.initializers.GlorotUniform() for _ in range(3)]
        self.dropout = Dropout(self.config.attention_dropout_rate, dtype=self.dtype_policy)

    def _built_projection(self, name: str, input_shape: Shape, letters: str) -> HeadProjection:
        """The projection of one input by the matrices W^Q, W^K and W^V of these letters."""
        config, use_bias, policy = self.config, self.config.attention_bias, self.dtype_policy
        groups, size = config.num_key_value_heads, config.key_dim
        sizes = [(config.num_heads, size), (groups, size), (groups, config.value_dim)]
        chosen = ["qkv".index(letter) for letter in letters]
        fill = [self._initializers[i] for i in chosen]
        projection = HeadProjection(
            [sizes[i] for i in chosen], fill, use_bias=use_bias, dtype=policy, name=name
        )
        projection.build(input_shape)
        return projection

    def _build_output(self, query_shape: Shape) -> None:
        """Makes Wᴼ, which maps concatenated heads to the size of the queries' sequence."""
        bias, policy = self.config.attention_bias, self.dtype_policy
        size = self.config.num_heads * self.config.value_dim
        self.output_projection = Dense(query_shape[-1], use_bias=bias, dtype=policy, name="output")
        self.output_projection.build((*query_shape[:-1], size))

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
        length, size = size_of(heads, 2), heads.shape[1] * heads.shape[3]
        if heads.shape[2] != 1:
            heads = ops.einsum("bhtk->bthk", heads)
        output = self.output_projection(ops.reshape(heads, (-1, size)))  # (B·T, D)
        return ops.reshape(output, (-1, length, output.shape[-1]))


@keras.saving.register_keras_serializable(package="tf_transformer")
class SelfAttention(Attention):
    """Multi-head attention of a sequence to itself (paper section 3.2.3).

    W^Q, W^K and W^V are one variable and one product. Subclasses attend to fewer positions or in
    another way, and build nothing of size T · T.

    Args:
        config: see `Attention`, also for the options.
        is_causal: whether later positions are hidden.

    Call arguments:
        x: float tensor (B, T, D).
        attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend. A mask
            (B, T, S) needs an axis of heads, `mask[:, None]`. The layer ignores the implicit masks
            of Keras.
        training: whether dropout is on.
        positions: positions of queries and keys, if the encoding acts on scores.
        earlier: keys and values of earlier positions, which x follows. S counts them, too, and the
            mask says all: a causal layer then adds no mask of its own.

    Returns:
        `Attended`: the output (B, T, D), the attention weights, and keys and values.

    Raises:
        ValueError: if `attention_mask` is not a mask, such as a value in the place where Keras has
            it.

    Attributes:
        window: number of latest positions that a cache keeps, with the query's own; None: all.
        stores_rows: whether a cache holds a row of keys and values for each position; else it
            holds one state of constant size for each hypothesis.

    Example:
        >>> layer = SelfAttention(num_heads=2, key_dim=4, is_causal=True)
        >>> layer(np.ones((3, 5, 8), "float32")).output.shape
        TensorShape([3, 5, 8])
    """

    stores_rows: ClassVar[bool] = True

    def __init__(
        self, config: Config = None, is_causal: bool = False, **options: Unpack[AttentionOptions]
    ):
        super().__init__(config, **options)
        self.is_causal = is_causal

    def build(self, x_shape: Shape) -> None:
        self.projection = self._built_projection("query_key_value", x_shape, "qkv")
        self._build_output(x_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: Positions | None = None,
        earlier: Stored | None = None,
    ) -> Attended:
        mask = attention_mask
        if earlier is None:
            require_mask("attention_mask", mask, x, x, self.config.num_heads)
            mask = combine_masks(causal_mask(ops.shape(x)[1]) if self.is_causal else None, mask)
        query, new = self.project(x)
        bias = None
        if positions is not None:
            query, new = positions.rotate(query), new._replace(key=positions.rotate(new.key))
            bias = positions.bias(query)
        stored = new if earlier is None else earlier.with_new(new)
        return self.attend(query, stored, mask, bias, training)

    @property
    def window(self) -> int | None:
        return None

    def project(self, x: KerasTensor) -> tuple[KerasTensor, KeyValue]:
        """(B, T, D) to queries (B, H, T, K), and to keys and values (B, G, T, K)."""
        query, key, value = self.projection.heads(x)
        return query, KeyValue(key, value)

    def visible(
        self, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor | None:
        """Which keys at (1 or B, S) queries at (T,) see: bool (1 or B, 1, T, S); None: all."""
        return None

    def by_position(self, weights: KerasTensor) -> KerasTensor:
        """Converts the attention weights of whole sequences to (B, H, T, T)."""
        return weights

    def nothing(self, batch: int | KerasTensor) -> Stored:
        """Returns keys and values of zero positions for B sequences."""
        config = self.config
        sizes = (config.key_dim, config.value_dim)
        shapes = [(batch, config.num_key_value_heads, 0, size) for size in sizes]
        return KeyValue(*(ops.zeros(shape, self.compute_dtype) for shape in shapes))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"is_causal": self.is_causal}


@keras.saving.register_keras_serializable(package="tf_transformer")
class CrossAttention(Attention):
    """Multi-head attention of a sequence to another one (paper section 3.2.3).

    W^K and W^V are one variable and one product. `Attention` describes the arguments.

    Call arguments:
        query: float tensor (B, T, D).
        value: float tensor (B, S, D'), the source of keys and values.
        attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        training: whether dropout is on.
        stored: the result of `keys_values` for a value, in place of `value`.

    Returns:
        `Attended`: the output (B, T, D), the attention weights, and keys and values.

    Example:
        >>> layer, x = CrossAttention(num_heads=2, key_dim=4), np.ones((3, 5, 8), "float32")
        >>> layer(x, np.ones((3, 7, 9), "float32")).weights.shape
        TensorShape([3, 2, 5, 7])
    """

    def build(self, query_shape: Shape, value_shape: Shape | None = None) -> None:
        if value_shape is None:
            raise ValueError(f"{self.name} attends to a second sequence, value, but got none.")
        self.query_projection = self._built_projection("query", query_shape, "q")
        self.key_value_projection = self._built_projection("key_value", value_shape, "kv")
        self._build_output(query_shape)

    def call(
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        stored: Stored | None = None,
    ) -> Attended:
        if stored is None:
            require_mask("attention_mask", attention_mask, query, value, self.config.num_heads)
            stored = self.keys_values(value)
        return self.attend(self.queries(query), stored, attention_mask, training=training)

    def queries(self, query: KerasTensor) -> KerasTensor:
        """(B, T, D) to queries (B, H, T, K)."""
        return self.query_projection.heads(query)[0]

    def keys_values(self, value: KerasTensor) -> KeyValue:
        """(B, S, D') to keys and values (B, G, S, K)."""
        return KeyValue(*self.key_value_projection.heads(value))
