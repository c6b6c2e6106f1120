"""The results of layers, with the attention weights that one forward pass computes."""

from typing import NamedTuple

from keras import KerasTensor

from tf_transformer.layers.stored import Stored


class Attended(NamedTuple):
    """The result of an attention layer."""

    output: KerasTensor  # (B, T, D)
    weights: KerasTensor | tuple  # (B, H, T, S), before dropout; rows sum to 1
    stored: Stored  # the keys and values attended to


class BlockOutput(NamedTuple):
    """The results of one layer of an encoder or decoder."""

    output: KerasTensor  # (B, T, D)
    attention: KerasTensor | tuple  # (B, H, T, S), or as the class says: self-attention's weights
    cross_attention: KerasTensor | tuple  # (B, H, T, S); () without cross-attention
    stored: Stored  # self-attention's keys and values, with those of earlier positions


class StackOutput(NamedTuple):
    """The results of an encoder or decoder; lists have one entry per layer."""

    output: KerasTensor  # (B, T, D)
    attention: list  # (B, H, T, S), or as the class says: self-attention's weights
    cross_attention: list  # (B, H, T, S); () without cross-attention
    stored: list[Stored]  # self-attention's keys and values
