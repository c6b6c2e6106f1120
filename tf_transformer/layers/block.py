"""The encoder layer and the decoder layer (paper section 3.1)."""

from typing import Any, ClassVar, NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.layers.attention import MultiHeadAttention
from tf_transformer.layers.cache import Memory
from tf_transformer.layers.feed_forward import Activation, FeedForward
from tf_transformer.layers.normalization import Normalization
from tf_transformer.layers.pattern import PATTERNS
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.residual import Residual


class BlockOutput(NamedTuple):
    """The results of one layer of an encoder or decoder."""

    output: KerasTensor  # (B, T, D)
    attention: KerasTensor | tuple  # (B, H, T, S), or as the pattern says: self-attention's weights
    cross_attention: KerasTensor | tuple  # (B, H, T, S); () without cross-attention
    cache: Any  # self-attention's keys and values, in the layout of the given cache


class Block(keras.layers.Layer):
    """Self-attention, cross-attention if there is a memory, and feed-forward.

    Each is in a residual connection. Encoders are blocks without cross-attention, decoders of a
    translation model blocks with it, decoders of a language model blocks without it.

    Args:
        num_heads: number of attention heads, H.
        key_dim: size of a head's queries and keys, K.
        d_ff: size of the feed-forward hidden layer, F.
        value_dim: size of a head's values; `key_dim` when None.
        dropout_rate: dropout on each sub-layer's output.
        attention_dropout_rate: dropout on attention weights.
        feed_forward_dropout_rate: dropout inside the feed-forward network.
        attention_bias: whether attention projections have biases.
        norm_first: pre-norm instead of the paper's post-norm.
        has_cross_attention: whether there is a memory to attend to.
        num_key_value_heads: heads of keys and values; `num_heads` when None.
        activation: of the feed-forward network, `relu` (the paper), `gelu` or `swiglu`.
        normalization: `layer_norm` (the paper) or `rms_norm`.
        attention: the pattern of self-attention: `full` (the paper), `local`, `strided` or
            `linear`; see `layers/pattern.py`. All but `full` take masks that hide keys only.
        attention_window: positions around a query that `local` and `strided` attend to, r.
    """

    is_causal: ClassVar[bool]  # whether no position attends to later ones

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float = 0.0,
        feed_forward_dropout_rate: float = 0.0,
        attention_bias: bool = False,
        norm_first: bool = False,
        has_cross_attention: bool = False,
        num_key_value_heads: int | None = None,
        activation: Activation = "relu",
        normalization: Normalization = "layer_norm",
        attention: str = "full",
        attention_window: int = 256,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.options = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "d_ff": d_ff,
            "value_dim": value_dim,
            "dropout_rate": dropout_rate,
            "attention_dropout_rate": attention_dropout_rate,
            "feed_forward_dropout_rate": feed_forward_dropout_rate,
            "attention_bias": attention_bias,
            "norm_first": norm_first,
            "num_key_value_heads": num_key_value_heads,
            "activation": activation,
            "normalization": normalization,
            "attention": attention,
            "attention_window": attention_window,
        }
        policy = self.dtype_policy
        rate = attention_dropout_rate
        sizes = (num_heads, key_dim, value_dim, attention_bias, rate, num_key_value_heads)
        pattern = PATTERNS[attention](attention_window, self.is_causal)
        residual = (dropout_rate, norm_first, normalization)
        self.has_cross_attention = has_cross_attention
        self.self_attention = MultiHeadAttention(*sizes, pattern, dtype=policy)
        if has_cross_attention:
            self.cross_attention = MultiHeadAttention(*sizes, dtype=policy)
        self.feed_forward = FeedForward(d_ff, feed_forward_dropout_rate, activation, dtype=policy)
        self.attention_residual = Residual(*residual, dtype=policy)
        if has_cross_attention:
            self.cross_residual = Residual(*residual, dtype=policy)
        self.feed_forward_residual = Residual(*residual, dtype=policy)

    def _build(self, x_shape, memory_shape=None) -> None:
        self.self_attention.build(x_shape)
        if self.has_cross_attention:
            self.cross_attention.build(x_shape, memory_shape or x_shape)
            self.cross_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        self.attention_residual.build(x_shape)
        self.feed_forward_residual.build(x_shape)

    def run(
        self,
        x: KerasTensor,
        memory: Any = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        positions: Positions | None = None,
        cache: Any = None,
        training: bool | None = None,
    ) -> BlockOutput:
        """The layer on whole sequences, or on new positions of sequences with a cache.

        In a search, the T positions of x are those of the W hypotheses of a sentence at one step:
        queries of one sequence to the memory and to the cache that they share.

        Args:
            x: float tensor (B, T, D).
            memory: the encoder's output as `Memory`, or this layer's keys and values of it in any
                layout of `layers/cache.py`.
            attention_mask: bool tensor that broadcasts to (B, H, T, S), S with the cache.
            cross_attention_mask: bool tensor that broadcasts to (B, H, T, S).
            positions: of x and of the cache, for an encoding that acts on scores.
            cache: self-attention's keys and values of earlier positions.
            training: whether dropout is on.
        """
        attended = self.self_attention.self_attend(
            self.attention_residual.before(x), attention_mask, positions, cache, training
        )
        x = self.attention_residual(x, attended.output, training=training)
        cross_weights: KerasTensor | tuple = ()
        if self.has_cross_attention:
            query = self.cross_residual.before(x)
            crossed = memory.cross_attend(
                self.cross_attention, query, cross_attention_mask, training
            )
            cross_weights = crossed.weights
            x = self.cross_residual(x, crossed.output, training=training)
        hidden = self.feed_forward(self.feed_forward_residual.before(x), training=training)
        x = self.feed_forward_residual(x, hidden, training=training)
        return BlockOutput(x, attended.weights, cross_weights, attended.cache)

    def get_config(self):
        return super().get_config() | self.options


@keras.saving.register_keras_serializable(package="tf_transformer")
class EncoderLayer(Block):
    """Self-attention, then feed-forward, each in a residual connection (paper section 3.1).

    Args: those of `Block` without `has_cross_attention`.

    Call arguments:
        x: float tensor (B, S, D).
        attention_mask: bool tensor that broadcasts to (B, H, S, S), True = may attend.
        training: whether dropout is on.

    Returns:
        float tensor (B, S, D). `run` returns `BlockOutput`, with the attention weights.

    Example:
        >>> layer = EncoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> layer(np.ones((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    is_causal = False

    def build(self, x_shape):
        self._build(x_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.run(x, attention_mask=attention_mask, training=training).output

    def compute_output_shape(self, x_shape):
        return x_shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class DecoderLayer(Block):
    """Masked self-attention, cross-attention to the memory, feed-forward (paper section 3.1).

    Args: those of `Block`; here `has_cross_attention` is True by default. Without it the layer is
        that of a decoder-only model.

    Call arguments:
        x: float tensor (B, T, D).
        memory: float tensor (B, S, D'), the encoder's output; None without cross-attention.
        attention_mask: bool tensor that broadcasts to (B, H, T, T); must be causal with
            `attention` full. Other patterns are causal themselves.
        cross_attention_mask: bool tensor that broadcasts to (B, H, T, S).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D). `run` returns `BlockOutput`, with the attention weights.

    Example:
        >>> layer = DecoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> x, memory = np.ones((3, 5, 8), "float32"), np.ones((3, 7, 8), "float32")
        >>> layer(x, memory, causal_mask(5)).shape
        TensorShape([3, 5, 8])
    """

    is_causal = True

    def __init__(self, num_heads: int, key_dim: int, d_ff: int, **options):
        super().__init__(num_heads, key_dim, d_ff, **{"has_cross_attention": True} | options)

    def build(self, x_shape, memory_shape=None):
        self._build(x_shape, memory_shape)

    def get_config(self):
        return super().get_config() | {"has_cross_attention": self.has_cross_attention}

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.run(
            x,
            None if memory is None else Memory(memory),
            attention_mask,
            cross_attention_mask,
            training=training,
        ).output

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape
