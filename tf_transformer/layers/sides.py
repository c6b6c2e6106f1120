"""The call arguments of encoder and decoder, for layers and stacks."""

from collections.abc import Callable
from typing import ClassVar

from keras import KerasTensor


class EncoderSide:
    """The call of an encoder layer and of an encoder.

    Call arguments:
        x: float tensor (B, S, D).
        attention_mask: bool tensor that broadcasts to (B, H, S, S), True = may attend.
        training: whether dropout is on.

    Returns:
        float tensor (B, S, D). `run` also returns the attention weights.
    """

    is_causal: ClassVar = False
    run: Callable
    _build: Callable

    def build(self, x_shape):
        self._build(x_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.run(x, None, attention_mask, training=training).output


class DecoderSide:
    """The call of a decoder layer and of a decoder.

    Call arguments:
        x: float tensor (B, T, D).
        memory: float tensor (B, S, D'), the encoder's output; None without cross-attention.
        attention_mask: bool tensor that broadcasts to (B, H, T, T), True = may attend. Full
            attention needs a causal mask here. Local, strided and linear attention are causal
            without one.
        cross_attention_mask: bool tensor that broadcasts to (B, H, T, S), True = may attend.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D). `run` also returns the attention weights.
    """

    is_causal: ClassVar = True
    run: Callable
    _build: Callable

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
