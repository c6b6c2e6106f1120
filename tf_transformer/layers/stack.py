"""The encoder and the decoder: equal layers one after another (paper section 3.1)."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.block import Block, DecoderLayer, EncoderLayer
from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.layer_drop import LayerDrop
from tf_transformer.layers.normalization import NORMALIZATIONS
from tf_transformer.layers.outputs import BlockOutput, StackOutput
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.remat import recompute


class Stack(ConfiguredLayer):
    """`num_layers` equal layers, with a final norm under pre-norm.

    Args:
        layer_class: `EncoderLayer` or `DecoderLayer`.
        config: the configuration of the stack, or its fields by name. The stack reads `num_layers`
            (paper: N), `layer_drop_rate`, and `remat`, whether a layer's inside is computed again
            for the backward pass.
        position: the encoding that acts on the scores of self-attention, if there is one.
        of_layers: other arguments of `layer_class`.
        **options: see `ConfiguredLayer`.
    """

    def __init__(
        self,
        layer_class: type[Block],
        config: Config = None,
        position: PositionEncoding | dict | None = None,
        of_layers: dict[str, Any] | None = None,
        **options: Any,
    ):
        super().__init__(config, **options)
        config, policy = self.config, self.dtype_policy
        self.layer_drop = LayerDrop(config.layer_drop_rate, dtype=policy)
        self.layers = [
            layer_class(config, dtype=policy, name=f"layer_{i}", **of_layers or {})
            for i in range(config.num_layers)
        ]
        norm = NORMALIZATIONS[config.normalization]
        self.final_norm = norm(dtype=policy) if config.norm_first else None
        if isinstance(position, dict):  # as in `get_config`
            position = keras.saving.deserialize_keras_object(position)
        self.position: Any = position  # a `PositionEncoding`, or None

    def _build(self, x_shape, memory_shape=None) -> None:
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
        """A call that returns the attention weights of all layers, too.

        `positions` are those of x, an int tensor (T,); 0 to T - 1 when None.
        """
        positions = ops.arange(ops.shape(x)[1]) if positions is None else positions
        options = {"positions": self.positions(positions, positions[None]), "training": training}
        inputs = memory, attention_mask, cross_attention_mask
        outputs = []
        for layer in self.layers:
            if self.config.remat and training:
                used = [layer] if self.position is None else [layer, self.position]
                outputs.append(recompute(used, layer.run_whole, x, *inputs, **options))
            else:
                outputs.append(layer.run_whole(x, *inputs, **options))
            x = self.layer_drop(x, outputs[-1].output, training=training)
        return self.finish(x, outputs)

    def finish(self, x: KerasTensor, outputs: Sequence[BlockOutput]) -> StackOutput:
        """The results, from the output of the last layer and those of all layers."""
        _, attention, cross_attention, stored = map(list, zip(*outputs, strict=True))
        x = x if self.final_norm is None else self.final_norm(x)
        return StackOutput(x, attention, cross_attention, stored)

    def positions(self, queries: KerasTensor, keys: KerasTensor) -> Positions | None:
        """Positions (T,) and (1 or B, S) for an encoding that acts on scores."""
        return None if self.position is None else Positions(self.position, queries, keys)

    def by_position(self, attention: Sequence) -> list[KerasTensor]:
        """`StackOutput.attention` as (B, H, T, T) for each layer; none with linear attention."""
        pairs = zip(self.layers, attention, strict=True)
        return [
            layer.self_attention.by_position(weights) for layer, weights in pairs if len(weights)
        ]

    def get_config(self):
        position = self.position and keras.saving.serialize_keras_object(self.position)
        return super().get_config() | {"position": position}


@keras.saving.register_keras_serializable(package="tf_transformer")
class Encoder(Stack):
    """A stack of `EncoderLayer`; its arguments and results are those of a layer.

    Args: `config`, `position` and `**options` of `Stack`.
    """

    def __init__(self, config: Config = None, position=None, **options: Any):
        super().__init__(EncoderLayer, config, position, **options)

    def build(self, x_shape):
        self._build(x_shape)

    def compute_output_shape(self, x_shape):
        return x_shape

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.run(x, None, attention_mask, training=training).output


@keras.saving.register_keras_serializable(package="tf_transformer")
class Decoder(Stack):
    """A stack of `DecoderLayer`; its arguments and results are those of a layer.

    Args: `config`, `position` and `**options` of `Stack`, and `has_cross_attention`.
    """

    def __init__(
        self, config: Config = None, position=None, has_cross_attention: bool = True, **options: Any
    ):
        of_layers = {"has_cross_attention": has_cross_attention}
        super().__init__(DecoderLayer, config, position, of_layers, **options)
        self.has_cross_attention = has_cross_attention

    def build(self, x_shape, memory_shape=None):
        self._build(x_shape, memory_shape)

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        masks = attention_mask, cross_attention_mask
        return self.run(x, memory, *masks, training=training).output

    def sequence_mask(self, length: int | KerasTensor) -> KerasTensor | None:
        """The mask that targets of T positions need besides those that hide padding."""
        return self.layers[0].self_attention.sequence_mask(length)

    def get_config(self):
        return super().get_config() | {"has_cross_attention": self.has_cross_attention}
