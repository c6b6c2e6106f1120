"""The encoder and the decoder: stacks of equal layers (paper section 3.1)."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Unpack

import keras
from keras import KerasTensor

from tf_transformer.config import LayerConfig
from tf_transformer.layers.block import Block, BlockOutput, DecoderLayer, EncoderLayer
from tf_transformer.layers.configured import Config, ConfiguredLayer, StackOptions, fields_in
from tf_transformer.layers.later.layer_drop import LayerDrop
from tf_transformer.layers.later.remat import recomputed
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.stored import Stored
from tf_transformer.layers.variants import make_norm


class StackOutput(NamedTuple):
    """The results of an encoder or decoder; lists have one entry per layer."""

    output: KerasTensor  # (B, T, D)
    attention: list  # weights of self-attention: (B, H, T, S), or as the class of attention says
    cross_attention: list  # (B, H, T, S); () without cross-attention
    stored: list[Stored]  # keys and values of self-attention


class Stack(ConfiguredLayer):
    """`num_layers` equal layers (paper: N), and with pre-norm a last normalization."""

    reads: ClassVar = fields_in(StackOptions)
    _layer: Callable[..., Block]  # makes a layer from the configuration

    def __init__(
        self,
        config: Config = None,
        position: PositionEncoding | dict | None = None,
        **options: Unpack[StackOptions],
    ):
        super().__init__(config, autocast=False, **options)  # as in `Attention`
        config, policy = self.config, self.dtype_policy
        rate = config.layer_drop_rate
        self.layer_drop = LayerDrop(rate, dtype=policy) if rate else None
        self.layers = [
            self._layer(config, dtype=policy, name=f"layer_{i}") for i in range(config.num_layers)
        ]
        self.final_norm = None
        if config.norm_first:
            self.final_norm = make_norm(config, dtype=policy, name="final_norm")
        self.position = PositionEncoding.restored(position)

    def _build(self, x_shape: Shape, *memory_shape: Shape | None) -> None:
        for layer in self.layers:
            layer.build(x_shape, *memory_shape)
        if self.position is not None and not self.position.built:
            self.position.build(x_shape)
        if self.final_norm is not None:
            self.final_norm.build(x_shape)

    def _run(
        self,
        x: KerasTensor,
        *inputs: KerasTensor | None,
        positions: KerasTensor | None,
        training: bool | None,
    ) -> StackOutput:
        """Runs all layers; `inputs` are the other tensors that each of them gets."""
        config, scored, outputs = self.config, Positions.of(self.position, x, positions), []
        for layer in self.layers:
            # `call`: TensorFlow orders sums by names, which Keras' scopes around a layer change.
            run = recomputed(layer, self.position) if config.remat and training else layer.call
            outputs.append(run(x, *inputs, training=training, positions=scored))
            skipped, x = x, outputs[-1].output
            if self.layer_drop is not None:
                x = self.layer_drop(skipped, x, training=training)
        return self.finish(x, outputs)

    def finish(self, x: KerasTensor, outputs: Sequence[BlockOutput]) -> StackOutput:
        """Makes the results from the last layer's output x and the outputs of all layers."""
        _, attention, cross_attention, stored = map(list, zip(*outputs, strict=True))
        x = x if self.final_norm is None else self.final_norm(x)
        return StackOutput(x, attention, cross_attention, stored)

    def get_config(self) -> dict[str, Any]:
        position = self.position and keras.saving.serialize_keras_object(self.position)
        return super().get_config() | {"position": position}


@keras.saving.register_keras_serializable(package="tf_transformer")
class Encoder(Stack):
    """A stack of encoder layers (paper section 3.1).

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        position: the position encoding if it acts on the scores of self-attention, else None.
        **options: the options of `StackOptions`, which `ModelConfig` describes.

    `EncoderLayer` describes the call; here `positions` is an int tensor (S,), None: 0 to S - 1.

    Returns:
        `StackOutput`: the output (B, S, D), and the attention weights of all layers.
    """

    def _layer(self, config: LayerConfig, **options: Any) -> EncoderLayer:
        return EncoderLayer(config, **options)

    def build(self, x_shape: Shape) -> None:
        self._build(x_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: KerasTensor | None = None,
    ) -> StackOutput:
        return self._run(x, attention_mask, positions=positions, training=training)


@keras.saving.register_keras_serializable(package="tf_transformer")
class Decoder(Stack):
    """A stack of decoder layers (paper section 3.1). It is causal without a mask.

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        position: the position encoding if it acts on the scores of self-attention, else None.
        has_cross_attention: whether the layers attend to a memory.
        **options: the options of `StackOptions`, which `ModelConfig` describes.

    `DecoderLayer` describes the call; here `positions` is an int tensor (T,), None: 0 to T - 1.

    Returns:
        `StackOutput`: the output (B, T, D), and the attention weights of all layers.

    Example:
        >>> decoder = Decoder(num_layers=2, num_heads=2, key_dim=4, d_ff=16)
        >>> x, memory = np.ones((3, 5, 8), "float32"), np.ones((3, 7, 8), "float32")
        >>> decoder(x, memory).output.shape
        TensorShape([3, 5, 8])
    """

    def __init__(
        self,
        config: Config = None,
        position: PositionEncoding | dict | None = None,
        has_cross_attention: bool = True,
        **options: Unpack[StackOptions],
    ):
        self.has_cross_attention = has_cross_attention
        super().__init__(config, position, **options)

    def _layer(self, config: LayerConfig, **options: Any) -> DecoderLayer:
        return DecoderLayer(config, self.has_cross_attention, **options)

    def build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        self._build(x_shape, memory_shape)

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: KerasTensor | None = None,
    ) -> StackOutput:
        inputs = memory, attention_mask, cross_attention_mask
        return self._run(x, *inputs, positions=positions, training=training)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"has_cross_attention": self.has_cross_attention}
