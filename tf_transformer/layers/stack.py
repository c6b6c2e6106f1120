"""The encoder and the decoder: equal layers one after another (paper section 3.1)."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.block import Block, BlockOutput, DecoderLayer, EncoderLayer
from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.layer_drop import LayerDrop
from tf_transformer.layers.normalization import NORMALIZATIONS
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.remat import recompute
from tf_transformer.layers.stored import Stored


class StackOutput(NamedTuple):
    """The results of an encoder or decoder; lists have one entry per layer."""

    output: KerasTensor  # (B, T, D)
    attention: list  # (B, H, T, S), or as the class says: self-attention's weights
    cross_attention: list  # (B, H, T, S); () without cross-attention
    stored: list[Stored]  # self-attention's keys and values


class Stack(ConfiguredLayer):
    """`num_layers` equal layers, with a final norm under pre-norm.

    Args:
        make_layer: makes a layer from the configuration.
        config: the configuration of the stack, or its fields by name. Besides the fields of layers,
            the stack reads `num_layers` (paper: N), `layer_drop_rate`, the probability that
            training skips a layer, and `remat`, whether a layer's inside is computed again for the
            backward pass, to save memory.
        position: the encoding that acts on the scores of self-attention, if there is one.
        **options: see `ConfiguredLayer`.
    """

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
        norm = NORMALIZATIONS[config.normalization]
        self.final_norm = norm(dtype=policy) if config.norm_first else None
        self.position: PositionEncoding | None = (
            keras.saving.deserialize_keras_object(position)
            if isinstance(position, dict)  # as in `get_config`
            else position
        )

    def _build(self, x_shape, *memory_shape) -> None:
        for layer in self.layers:
            layer.build(x_shape, *memory_shape)
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
        """All layers, over whole sequences.

        Args:
            x: float tensor (B, T, D).
            memory: float tensor (B, S, D'), the encoder's output.
            attention_mask: bool tensor that broadcasts to (B, H, T, T).
            cross_attention_mask: bool tensor that broadcasts to (B, H, T, S).
            positions: int tensor (T,), the positions of x; 0 to T - 1 when None.
            training: whether dropout is on.
        """
        positions = ops.arange(ops.shape(x)[1]) if positions is None else positions
        options = {"positions": self._positions(positions, positions[None]), "training": training}
        inputs = memory, attention_mask, cross_attention_mask
        outputs = []
        for layer in self.layers:
            if self.config.remat and training:
                used = [layer] if self.position is None else [layer, self.position]
                outputs.append(recompute(used, layer.run_whole, x, *inputs, **options))
            else:
                outputs.append(layer.run_whole(x, *inputs, **options))
            x = self.layer_drop(x, outputs[-1].output, training=training)
        return self._output(x, outputs)

    def step(
        self,
        x: KerasTensor,
        memories: Sequence[Stored | None],
        earlier: Sequence[Stored],
        attention_mask: KerasTensor | None,
        cross_attention_mask: KerasTensor | None,
        query_positions: KerasTensor,
        key_positions: KerasTensor,
    ) -> StackOutput:
        """All layers, over new positions of sequences whose earlier positions have been computed.

        Args:
            x: float tensor (B, T, D).
            memories: for each layer its keys and values of the encoder's output.
            earlier: for each layer its keys and values of earlier positions.
            attention_mask: bool tensor that broadcasts to (B, H, T, S), S with earlier positions.
            cross_attention_mask: bool tensor that broadcasts to (B, H, T, S').
            query_positions: int tensor (T,), the positions of x.
            key_positions: int tensor (1 or B, S), the earlier positions and those of x.
        """
        masks = attention_mask, cross_attention_mask
        positions = self._positions(query_positions, key_positions)
        outputs = []
        for layer, memory, before in zip(self.layers, memories, earlier, strict=True):
            outputs.append(layer.run(x, memory, *masks, positions, before))
            x = outputs[-1].output
        return self._output(x, outputs)

    def _output(self, x: KerasTensor, outputs: list[BlockOutput]) -> StackOutput:
        _, attention, cross_attention, stored = map(list, zip(*outputs, strict=True))
        x = x if self.final_norm is None else self.final_norm(x)
        return StackOutput(x, attention, cross_attention, stored)

    def _positions(self, queries: KerasTensor, keys: KerasTensor) -> Positions | None:
        return None if self.position is None else Positions(self.position, queries, keys)

    def by_position(self, attention: Sequence) -> list[KerasTensor]:
        """Self-attention's weights (B, H, T, T) of each layer; none with linear attention.

        Args:
            attention: `StackOutput.attention` of whole sequences.
        """
        return [
            layer.self_attention.by_position(weights)
            for layer, weights in zip(self.layers, attention, strict=True)
            if len(weights)
        ]

    def get_config(self):
        position = self.position and keras.saving.serialize_keras_object(self.position)
        return super().get_config() | {"position": position}


@keras.saving.register_keras_serializable(package="tf_transformer")
class Encoder(Stack):
    """A stack of `num_layers` encoder layers, with a final norm under pre-norm.

    Args:
        config: the configuration of the encoder, or its fields by name; see `Stack`.
        position: the encoding that acts on the scores of self-attention, if there is one.
        **options: see `ConfiguredLayer`.

    Call arguments and returns are those of `EncoderLayer`. `run` returns `StackOutput`, with
    the attention weights of all layers.
    """

    def __init__(
        self, config: Config = None, position: PositionEncoding | dict | None = None, **options: Any
    ):
        super().__init__(EncoderLayer, config, position, **options)

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
class Decoder(Stack):
    """A stack of `num_layers` decoder layers, with a final norm under pre-norm.

    Args:
        config: the configuration of the decoder, or its fields by name; see `Stack`.
        position: the encoding that acts on the scores of self-attention, if there is one.
        has_cross_attention: whether there is a memory to attend to.
        **options: see `ConfiguredLayer`.

    Call arguments and returns are those of `DecoderLayer`. `run` returns `StackOutput`, with
    the attention weights of all layers.
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

    def build(self, x_shape, memory_shape=None):
        self._build(x_shape, memory_shape)

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

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape
