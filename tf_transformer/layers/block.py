"""The encoder layer and the decoder layer (paper section 3.1)."""

from typing import Any, ClassVar

import keras
from keras import KerasTensor

from tf_transformer.layers.attention import MultiHeadAttention
from tf_transformer.layers.configured import Config, ConfiguredLayer, read_by
from tf_transformer.layers.masks import require_mask
from tf_transformer.layers.outputs import BlockOutput
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.residual import Residual
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.sides import DecoderSide, EncoderSide
from tf_transformer.layers.stored import Stored
from tf_transformer.layers.variants import FEED_FORWARD, SELF_ATTENTION


class Block(ConfiguredLayer):
    """Self-attention, cross-attention if there is a memory, and feed-forward, each in a residual.

    `ConfiguredLayer` has the arguments; `has_cross_attention` says whether there is a memory.
    """

    is_causal: ClassVar[bool]  # whether later positions are hidden
    reads: ClassVar = read_by(
        MultiHeadAttention, Residual, *SELF_ATTENTION.values(), *FEED_FORWARD.values()
    ) | {"attention"}

    def __init__(self, config: Config = None, has_cross_attention: bool = False, **options: Any):
        super().__init__(config, **options)
        config, policy = self.config, self.dtype_policy
        self.has_cross_attention = has_cross_attention
        attention = SELF_ATTENTION[config.attention]
        self.self_attention = attention(config, self.is_causal, dtype=policy, name="self_attention")
        if has_cross_attention:
            self.cross_attention = MultiHeadAttention(config, dtype=policy, name="cross_attention")
        self.feed_forward = FEED_FORWARD[config.activation](
            config, dtype=policy, name="feed_forward"
        )
        self.attention_residual = Residual(config, dtype=policy, name="attention_residual")
        if has_cross_attention:
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

    def run(
        self,
        x: KerasTensor,
        memory: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        positions: Positions | None = None,
        training: bool | None = None,
    ) -> BlockOutput:
        """Like a call, but also returns attention weights; relative encodings use `positions`."""
        if self.has_cross_attention != (memory is not None):
            has, got = ("no ", "a ") if memory is not None else ("", "no ")
            raise ValueError(f"{self.name} has {has}cross-attention, but got {got}memory.")
        heads = self.config.num_heads
        require_mask("attention_mask", attention_mask, x, x, heads)
        if memory is not None:
            require_mask("cross_attention_mask", cross_attention_mask, x, memory, heads)
        stored = None if memory is None else self.cross_attention.keys_values(memory)
        masks = (attention_mask, cross_attention_mask)
        return self.step(x, stored, *masks, positions, training=training)

    def step(
        self,
        x: KerasTensor,
        memory: Stored | None,
        mask: KerasTensor | None,
        cross_mask: KerasTensor | None,
        positions: Positions | None,
        earlier: Stored | None = None,
        training: bool | None = None,
    ) -> BlockOutput:
        """Runs the layer on x (B, T, D), which may follow earlier positions.

        `memory` holds the keys and values of cross-attention. `earlier` holds the keys and values
        of earlier positions in self-attention; `mask` includes these positions.
        """
        before = self.attention_residual.before(x)
        attended = self.self_attention.self_attend(before, mask, positions, earlier, training)
        x = self.attention_residual(x, attended.output, training=training)
        cross_weights: KerasTensor | tuple = ()
        if memory is not None:
            query = self.cross_attention.queries(self.cross_residual.before(x))
            crossed = self.cross_attention.attend(query, memory, cross_mask, training=training)
            cross_weights = crossed.weights
            x = self.cross_residual(x, crossed.output, training=training)
        hidden = self.feed_forward(self.feed_forward_residual.before(x), training=training)
        x = self.feed_forward_residual(x, hidden, training=training)
        return BlockOutput(x, attended.weights, cross_weights, attended.stored)


@keras.saving.register_keras_serializable(package="tf_transformer")
class EncoderLayer(EncoderSide, Block):
    """Self-attention, then feed-forward, each in a residual connection (paper section 3.1).

    `ConfiguredLayer` describes the arguments, and `EncoderSide` the call.

    Example:
        >>> EncoderLayer(num_heads=2, key_dim=4, d_ff=16)(np.ones((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """


@keras.saving.register_keras_serializable(package="tf_transformer")
class DecoderLayer(DecoderSide, Block):
    """Masked self-attention, cross-attention to the memory, feed-forward (paper section 3.1).

    `Block` describes the arguments, and `DecoderSide` the call. Without cross-attention, this is
    the layer of a decoder-only model.

    Example:
        >>> layer = DecoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> x, memory = np.ones((3, 5, 8), "float32"), np.ones((3, 7, 8), "float32")
        >>> layer(x, memory, causal_mask(5)).shape
        TensorShape([3, 5, 8])
    """

    def __init__(self, config: Config = None, has_cross_attention: bool = True, **options: Any):
        super().__init__(config, has_cross_attention, **options)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"has_cross_attention": self.has_cross_attention}
