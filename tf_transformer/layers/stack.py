"""The encoder and the decoder: stacks of equal layers (paper section 3.1)."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import keras
from keras import KerasTensor

from tf_transformer.layers.block import Block, DecoderLayer, EncoderLayer
from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.later.layer_drop import LayerDrop
from tf_transformer.layers.later.remat import recompute
from tf_transformer.layers.outputs import BlockOutput, StackOutput
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.sides import DecoderSide, EncoderSide
from tf_transformer.layers.variants import make_norm


class Stack(ConfiguredLayer):
    """`num_layers` equal layers (paper: N), and with pre-norm a last normalization.

    Args:
        make_layer: function that makes a layer from the configuration.
        config: the configuration of the stack, or its fields as a dict.
        position: the position encoding if it acts on the scores of self-attention, else None.
        **options: see `ConfiguredLayer`.
    """

    reads: ClassVar = Block.reads | {"num_layers", "layer_drop_rate", "remat"}

    def __init__(
        self,
        make_layer: Callable[..., Block],
        config: Config = None,
        position: PositionEncoding | dict | None = None,
        **options: Any,
    ):
        super().__init__(config, **options)
        config, policy = self.config, self.dtype_policy
        self.layer_drop = LayerDrop(config.layer_drop_rate, dtype=policy)
        self.layers = [
            make_layer(config, dtype=policy, name=f"layer_{i}") for i in range(config.num_layers)
        ]
        self.final_norm = None
        if config.norm_first:
            self.final_norm = make_norm(config, dtype=policy, name="final_norm")
        self.position = PositionEncoding.restored(position)

    def _build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        for layer in self.layers:
            layer.build(*filter(None, (x_shape, memory_shape)))
        if self.position is not None and not self.position.built:
            self.position.build(x_shape)
        if self.final_norm is not None:
            self.final_norm.build(x_shape)

    def run(
        self,
        x: KerasTensor,
        memory: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        positions: KerasTensor | None = None,
        training: bool | None = None,
    ) -> StackOutput:
        """Like a call, but also returns attention weights; positions None: 0 to T - 1."""
        scored = Positions.of(self.position, x, positions)
        outputs = []
        for layer in self.layers:
            run: Callable = functools.partial(layer.run, positions=scored, training=training)
            if self.config.remat and training:
                used = [layer] if self.position is None else [layer, self.position]
                run = functools.partial(recompute, used, run)
            outputs.append(run(x, memory, attention_mask, cross_attention_mask))
            x = self.layer_drop(x, outputs[-1].output, training=training)
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
class Encoder(EncoderSide, Stack):
    """A stack of `EncoderLayer`. `Stack` has the arguments, `EncoderSide` the call."""

    def __init__(
        self, config: Config = None, position: PositionEncoding | dict | None = None, **options: Any
    ):
        super().__init__(EncoderLayer, config, position, **options)


@keras.saving.register_keras_serializable(package="tf_transformer")
class Decoder(DecoderSide, Stack):
    """A stack of `DecoderLayer`; `DecoderSide` describes the call.

    `Stack` has the arguments; `has_cross_attention` says whether there is a memory.
    """

    def __init__(
        self,
        config: Config = None,
        position: PositionEncoding | dict | None = None,
        has_cross_attention: bool = True,
        **options: Any,
    ):
        make_layer = functools.partial(DecoderLayer, has_cross_attention=has_cross_attention)
        super().__init__(make_layer, config, position, **options)
        self.has_cross_attention = has_cross_attention

    def sequence_mask(self, length: int | KerasTensor) -> KerasTensor | None:
        """The causal mask for targets of T positions, or None if the layers need no mask."""
        return self.layers[0].self_attention.sequence_mask(length)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"has_cross_attention": self.has_cross_attention}
