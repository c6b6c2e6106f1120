"""The encoder and the decoder: equal layers one after another (paper section 3.1)."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.layers.block import Block, DecoderLayer, EncoderLayer
from tf_transformer.layers.cache import Memory
from tf_transformer.layers.normalization import LayerNorm
from tf_transformer.layers.position import Positions
from tf_transformer.layers.remat import recompute


class StackOutput(NamedTuple):
    """The results of an encoder or decoder; lists have one entry per layer."""

    output: KerasTensor  # (B, T, D)
    attention: list[KerasTensor]  # (B, H, T, S): self-attention's weights
    cross_attention: list[KerasTensor]  # (B, H, T, S); () without cross-attention
    caches: list  # self-attention's keys and values, in the layout of the given caches


class Stack(keras.layers.Layer):
    """`num_layers` layers of `layer_class`, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        **layer_options: the arguments of `layer_class`.
    """

    layer_class: ClassVar[type[Block]]

    def __init__(
        self,
        num_layers: int,
        remat: bool = False,
        name=None,
        dtype=None,
        trainable=True,
        **layer_options,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.remat = remat
        self.layer_options = layer_options
        self.layers = [
            self.layer_class(**layer_options, dtype=self.dtype_policy, name=f"layer_{i}")
            for i in range(num_layers)
        ]
        self.final_norm = (
            LayerNorm(dtype=self.dtype_policy) if layer_options.get("norm_first") else None
        )

    def build(self, x_shape, memory_shape=None):
        for layer in self.layers:
            layer.build(x_shape, memory_shape)
        if self.final_norm is not None:
            self.final_norm.build(x_shape)

    def run(
        self,
        x: KerasTensor,
        memories: Sequence | None = None,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        positions: Positions | None = None,
        caches: Sequence | None = None,
        training: bool | None = None,
    ) -> StackOutput:
        """All layers one after another. Arguments are those of `Block.run`.

        Args:
            x: float tensor (B, T, D).
            memories: one memory per layer.
            attention_mask: bool tensor that broadcasts to (B, H, T, S).
            cross_attention_mask: bool tensor that broadcasts to (B, H, T, S).
            positions: of x and of the caches.
            caches: one cache per layer.
            training: whether dropout is on.
        """
        none = [None] * self.num_layers
        outputs = []
        for layer, memory, cache in zip(self.layers, memories or none, caches or none, strict=True):
            inputs = (x, memory, attention_mask, cross_attention_mask)
            options = {"positions": positions, "cache": cache, "training": training}
            if self.remat and training:
                outputs.append(recompute(layer, layer.run, *inputs, **options))
            else:
                outputs.append(layer.run(*inputs, **options))
            x = outputs[-1].output
        _, attention, cross_attention, caches = map(list, zip(*outputs, strict=True))
        x = x if self.final_norm is None else self.final_norm(x)
        return StackOutput(x, attention, cross_attention, caches)

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape

    def get_config(self):
        sizes = {"num_layers": self.num_layers, "remat": self.remat}
        return super().get_config() | sizes | self.layer_options


@keras.saving.register_keras_serializable(package="tf_transformer")
class Encoder(Stack):
    """A stack of `num_layers` encoder layers, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        **layer_options: the arguments of `EncoderLayer`.

    Call arguments and returns are those of `EncoderLayer`. `run` returns `StackOutput`, with
    the attention weights of all layers.
    """

    layer_class = EncoderLayer

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.run(x, attention_mask=attention_mask, training=training).output


@keras.saving.register_keras_serializable(package="tf_transformer")
class Decoder(Stack):
    """A stack of `num_layers` decoder layers, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        **layer_options: the arguments of `DecoderLayer`.

    Call arguments and returns are those of `DecoderLayer`. `run` returns `StackOutput`, with
    the attention weights of all layers.
    """

    layer_class = DecoderLayer

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
