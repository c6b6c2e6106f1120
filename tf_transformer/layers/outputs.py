"""The results of layers, with the attention weights of the forward pass."""

from typing import NamedTuple

from keras import KerasTensor

from tf_transformer.layers.stored import Stored


class Attended(NamedTuple):
    """The result of an attention layer."""

    output: KerasTensor  # (B, T, D)
    weights: KerasTensor | tuple  # (B, H, T, S), before dropout; rows sum to 1
    stored: Stored  # the keys and values that the queries attended to


class BlockOutput(NamedTuple):
    """The results of one layer of an encoder or decoder."""

    output: KerasTensor  # (B, T, D)
    attention: KerasTensor | tuple  # weights of self-attention: (B, H, T, S), or as its class says
    cross_attention: KerasTensor | tuple  # (B, H, T, S); () without cross-attention
    stored: Stored  # keys and values of self-attention, earlier positions included


class StackOutput(NamedTuple):
    """The results of an encoder or decoder; lists have one entry per layer."""

    output: KerasTensor  # (B, T, D)
    attention: list  # weights of self-attention: (B, H, T, S), or as the class of attention says
    cross_attention: list  # (B, H, T, S); () without cross-attention
    stored: list[Stored]  # keys and values of self-attention
