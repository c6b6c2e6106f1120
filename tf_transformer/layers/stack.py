"""The encoder and the decoder: equal layers one after another (paper section 3.1)."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.block import Block, DecoderLayer, EncoderLayer
from tf_transformer.layers.cache import Memory
from tf_transformer.layers.layer_drop import LayerDrop
from tf_transformer.layers.normalization import NORMALIZATIONS
from tf_transformer.layers.pattern import Pattern
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.remat import recompute


class StackOutput(NamedTuple):
    """The results of an encoder or decoder; lists have one entry per layer."""

    output: KerasTensor  # (B, T, D)
    attention: list  # (B, H, T, S), or as the pattern says: self-attention's weights
    cross_attention: list[KerasTensor]  # (B, H, T, S); () without cross-attention
    caches: list  # self-attention's keys and values, in the layout of the given caches


class Stack(keras.layers.Layer):
    """`num_layers` layers of `layer_class`, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        position: the encoding that acts on the scores of self-attention, if there is one.
        layer_drop_rate: probability that training skips a layer.
        **layer_options: the arguments of `layer_class`.
    """

    layer_class: ClassVar[type[Block]]

    def __init__(
        self,
        num_layers: int,
        remat: bool = False,
        position: PositionEncoding | dict | None = None,
        layer_drop_rate: float = 0.0,
        name=None,
        dtype=None,
        trainable=True,
        **layer_options,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.remat = remat
        self.layer_drop = LayerDrop(layer_drop_rate, dtype=self.dtype_policy)
        self.layer_options = layer_options
        self.layers = [
            self.layer_class(**layer_options, dtype=self.dtype_policy, name=f"layer_{i}")
            for i in range(num_layers)
        ]
        norm = NORMALIZATIONS[layer_options.get("normalization", "layer_norm")]
        self.final_norm = norm(dtype=self.dtype_policy) if layer_options.get("norm_first") else None
        self.position: PositionEncoding | None = (
            keras.saving.deserialize_keras_object(position)
            if isinstance(position, dict)  # as in `get_config`
            else position
        )

    @property
    def pattern(self) -> Pattern:
        """The pattern of self-attention, of all layers."""
        return self.layers[0].self_attention.pattern

    def by_position(self, attention: Sequence) -> list[KerasTensor]:
        """Self-attention's weights (B, H, T, T) of each layer; none with linear attention.

        Args:
            attention: `StackOutput.attention` of whole sequences.
        """
        return [self.pattern.by_position(weights) for weights in attention if len(weights)]

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
        memories: Sequence | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        caches: Sequence | None = None,
        query_positions: KerasTensor | None = None,
        key_positions: KerasTensor | None = None,
        training: bool | None = None,
    ) -> StackOutput:
        """All layers one after another.

        Args:
            x: float tensor (B, T, D).
            memories: one memory per layer.
            attention_mask: bool tensor that broadcasts to (B, H, T, S).
            cross_attention_mask: bool tensor that broadcasts to (B, H, T, S).
            caches: one cache per layer.
            query_positions: int tensor (T,), the positions of x; 0 to T - 1 when None.
            key_positions: int tensor (1 or B, S), the positions of x and of the caches; those of x
                when None.
            training: whether dropout is on.
        """
        positions = self._positions(x, query_positions, key_positions)
        none = [None] * self.num_layers
        outputs = []
        for layer, memory, cache in zip(self.layers, memories or none, caches or none, strict=True):
            inputs = (x, memory, attention_mask, cross_attention_mask)
            options = {"positions": positions, "cache": cache, "training": training}
            if self.remat and training:
                used = [layer] if self.position is None else [layer, self.position]
                outputs.append(recompute(used, layer.run, *inputs, **options))
            else:
                outputs.append(layer.run(*inputs, **options))
            x = self.layer_drop(x, outputs[-1].output, training=training)
        _, attention, cross_attention, caches = map(list, zip(*outputs, strict=True))
        x = x if self.final_norm is None else self.final_norm(x)
        return StackOutput(x, attention, cross_attention, caches)

    def _positions(self, x, query_positions, key_positions) -> Positions | None:
        if self.position is None:
            return None
        if query_positions is None:
            query_positions = ops.arange(ops.shape(x)[1])
        if key_positions is None:
            key_positions = query_positions[None]
        return Positions(self.position, query_positions, key_positions)

    def get_config(self):
        position = self.position and keras.saving.serialize_keras_object(self.position)
        options = {
            "num_layers": self.num_layers,
            "remat": self.remat,
            "position": position,
            "layer_drop_rate": self.layer_drop.rate,
        }
        return super().get_config() | options | self.layer_options


@keras.saving.register_keras_serializable(package="tf_transformer")
class Encoder(Stack):
    """A stack of `num_layers` encoder layers, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        position: the encoding that acts on the scores of self-attention, if there is one.
        layer_drop_rate: probability that training skips a layer.
        **layer_options: the arguments of `EncoderLayer`.

    Call arguments and returns are those of `EncoderLayer`. `run` returns `StackOutput`, with
    the attention weights of all layers.
    """

    layer_class = EncoderLayer

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
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        position: the encoding that acts on the scores of self-attention, if there is one.
        layer_drop_rate: probability that training skips a layer.
        **layer_options: the arguments of `DecoderLayer`.

    Call arguments and returns are those of `DecoderLayer`. `run` returns `StackOutput`, with
    the attention weights of all layers.
    """

    layer_class = DecoderLayer

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
        return self.run(
            x,
            self.same_memory(memory),
            attention_mask,
            cross_attention_mask,
            training=training,
        ).output

    def same_memory(self, memory: KerasTensor | None) -> list[Memory] | None:
        """A memory (B, S, D') for each layer to project."""
        return None if memory is None else [Memory(memory)] * self.num_layers

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape
