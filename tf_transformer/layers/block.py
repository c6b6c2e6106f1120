"""The encoder layer and the decoder layer (paper section 3.1)."""

from typing import Any, ClassVar, NamedTuple, Unpack

import keras
from keras import KerasTensor

from tf_transformer.layers.attention import CrossAttention
from tf_transformer.layers.configured import (
    Config,
    ConfiguredLayer,
    LayerOptions,
    ResidualOptions,
    fields_in,
)
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.mask_checks import require_mask
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.stored import Stored
from tf_transformer.layers.variants import FEED_FORWARD, SELF_ATTENTION, make_norm


class BlockOutput(NamedTuple):
    """The results of one layer of an encoder or decoder."""

    output: KerasTensor  # (B, T, D)
    attention: KerasTensor | tuple  # weights of self-attention: (B, H, T, S), or as its class says
    cross_attention: KerasTensor | tuple  # (B, H, T, S); () without cross-attention
    stored: Stored  # keys and values of self-attention, earlier positions included


@keras.saving.register_keras_serializable(package="tf_transformer")
class Residual(ConfiguredLayer):
    """LayerNorm(x + Dropout(Sublayer(x))), or with pre-norm x + Dropout(Sublayer(LayerNorm(x))).

    The first form is the paper's (sections 3.1 and 5.4). Pre-norm makes deep models easier to
    train; its stacks end with one more normalization. Use it in two steps:

        output = sublayer(residual.before(x))
        x = residual(x, output)

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        dropout_rate: dropout on the output of the sub-layer.
        norm_first: whether to normalize the input of the sub-layer (pre-norm).
        normalization: layer_norm or rms_norm.
        norm_epsilon: ε of the normalization.
        **options: arguments of Keras' layers, such as `name` and `dtype`.

    Call arguments:
        x: float tensor (B, T, D), like the result.
        output: float tensor (B, T, D), the output of the sub-layer.
        training: whether dropout is on.
    """

    reads: ClassVar = fields_in(ResidualOptions)

    def __init__(self, config: Config = None, **options: Unpack[ResidualOptions]):
        super().__init__(config, **options)
        self.norm = make_norm(self.config, dtype=self.dtype_policy, name="norm")
        self.dropout = Dropout(self.config.dropout_rate, dtype=self.dtype_policy)

    def build(self, x_shape: Shape, output_shape: Shape | None = None) -> None:
        self.norm.build(x_shape)

    def before(self, x: KerasTensor) -> KerasTensor:
        """Returns the input of the sub-layer, (B, T, D)."""
        return self.norm(x) if self.config.norm_first else x

    def call(
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        x = x + self.dropout(output, training=training)
        # Differs from the paper: pre-norm is an option, off by default.
        return x if self.config.norm_first else self.norm(x)


class Block(ConfiguredLayer):
    """The parts of an encoder layer or a decoder layer; a subclass runs them in `call`."""

    is_causal: ClassVar[bool]  # whether later positions are hidden
    has_cross_attention = False
    reads: ClassVar = fields_in(LayerOptions)

    def __init__(self, config: Config = None, **options: Unpack[LayerOptions]):
        super().__init__(config, autocast=False, **options)  # as in `Attention`
        config, policy = self.config, self.dtype_policy
        attention = SELF_ATTENTION[config.attention]
        self.self_attention = attention(config, self.is_causal, dtype=policy, name="self_attention")
        if self.has_cross_attention:
            self.cross_attention = CrossAttention(config, dtype=policy, name="cross_attention")
        feed_forward = FEED_FORWARD[config.activation]
        self.feed_forward = feed_forward(config, dtype=policy, name="feed_forward")
        self.attention_residual = Residual(config, dtype=policy, name="attention_residual")
        if self.has_cross_attention:
            self.cross_residual = Residual(config, dtype=policy, name="cross_residual")
        self.feed_forward_residual = Residual(config, dtype=policy, name="feed_forward_residual")

    def _build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        self.self_attention.build(x_shape)
        if self.has_cross_attention:
            self.cross_attention.build(x_shape, memory_shape or x_shape)
            self.cross_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        self.attention_residual.build(x_shape)
        self.feed_forward_residual.build(x_shape)


@keras.saving.register_keras_serializable(package="tf_transformer")
class EncoderLayer(Block):
    """Self-attention, then feed-forward, each in a residual connection (paper section 3.1).

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        **options: the options of `LayerOptions`, which `ModelConfig` describes.

    Call arguments:
        x: float tensor (B, S, D).
        attention_mask: bool tensor that broadcasts to (B, H, S, S), True = may attend.
        training: whether dropout is on.
        positions: positions of queries and keys, if the encoding acts on scores.

    Returns:
        `BlockOutput`: the output (B, S, D), attention weights, and keys and values.

    Example:
        >>> layer = EncoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> layer(np.ones((3, 5, 8), "float32")).output.shape
        TensorShape([3, 5, 8])
    """

    is_causal: ClassVar = False

    def build(self, x_shape: Shape) -> None:
        self._build(x_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: Positions | None = None,
    ) -> BlockOutput:
        before = self.attention_residual.before(x)
        attended = self.self_attention.call(
            before, attention_mask, training=training, positions=positions
        )
        x = self.attention_residual(x, attended.output, training=training)
        hidden = self.feed_forward(self.feed_forward_residual.before(x), training=training)
        x = self.feed_forward_residual(x, hidden, training=training)
        return BlockOutput(x, attended.weights, (), attended.stored)


@keras.saving.register_keras_serializable(package="tf_transformer")
class DecoderLayer(Block):
    """Masked self-attention, cross-attention to the memory, feed-forward (paper section 3.1).

    Self-attention is causal without a mask. Without cross-attention, this is the layer of a
    decoder-only model.

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        has_cross_attention: whether the layer attends to a memory.
        **options: the options of `LayerOptions`, which `ModelConfig` describes.

    Call arguments:
        x: float tensor (B, T, D).
        memory: float tensor (B, S, D'), the encoder's output; None without cross-attention.
        attention_mask: bool tensor that broadcasts to (B, H, T, T), True = may attend.
        cross_attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        training: whether dropout is on.
        positions: positions of queries and keys, if the encoding acts on scores.
        earlier: keys and values of earlier positions; see `SelfAttention`.
        stored_memory: `cross_attention.keys_values(memory)`, in place of `memory`.

    Returns:
        `BlockOutput`: the output (B, T, D), attention weights, and keys and values.

    Raises:
        ValueError: for a memory without cross-attention, or cross-attention without a memory.

    Example:
        >>> layer = DecoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> x, memory = np.ones((3, 5, 8), "float32"), np.ones((3, 7, 8), "float32")
        >>> layer(x, memory).output.shape
        TensorShape([3, 5, 8])
    """

    is_causal: ClassVar = True

    def __init__(
        self,
        config: Config = None,
        has_cross_attention: bool = True,
        **options: Unpack[LayerOptions],
    ):
        self.has_cross_attention = has_cross_attention
        super().__init__(config, **options)

    def build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        self._build(x_shape, memory_shape)

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: Positions | None = None,
        earlier: Stored | None = None,
        stored_memory: Stored | None = None,
    ) -> BlockOutput:
        has_memory = memory is not None or stored_memory is not None
        if self.has_cross_attention != has_memory:
            has, got = ("no ", "a ") if has_memory else ("", "no ")
            raise ValueError(f"{self.name} has {has}cross-attention, but got {got}memory.")
        if memory is not None:
            heads = self.config.num_heads
            require_mask("cross_attention_mask", cross_attention_mask, x, memory, heads)
            stored_memory = self.cross_attention.keys_values(memory)
        before = self.attention_residual.before(x)
        attended = self.self_attention.call(
            before, attention_mask, training=training, positions=positions, earlier=earlier
        )
        x = self.attention_residual(x, attended.output, training=training)
        cross_weights: KerasTensor | tuple = ()
        if stored_memory is not None:
            crossed = self.cross_attention.call(
                self.cross_residual.before(x),
                attention_mask=cross_attention_mask,
                training=training,
                stored=stored_memory,
            )
            cross_weights = crossed.weights
            x = self.cross_residual(x, crossed.output, training=training)
        hidden = self.feed_forward(self.feed_forward_residual.before(x), training=training)
        x = self.feed_forward_residual(x, hidden, training=training)
        return BlockOutput(x, attended.weights, cross_weights, attended.stored)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"has_cross_attention": self.has_cross_attention}
