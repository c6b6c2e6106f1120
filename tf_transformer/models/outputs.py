"""The results of forward passes: states, and the attention weights of all layers."""

from typing import NamedTuple

from keras import KerasTensor


class TransformerOutput(NamedTuple):
    """The results of a forward pass; lists have one entry for each layer."""

    states: KerasTensor  # (B, T, D), the decoder's output; `logits` makes logits from it
    memory: KerasTensor  # (B, S, D'), the encoder's output
    encoder_attention: list  # (B, H, S, S), rows sum to 1, or as the class of attention says
    decoder_attention: list  # (B, H, T, T), or as the class of attention says
    cross_attention: list[KerasTensor]  # (B, H, T, S); row t belongs to the token predicted at t


class LanguageModelOutput(NamedTuple):
    """The results of a forward pass; the list has one entry for each layer."""

    states: KerasTensor  # (B, T, D); `logits` makes logits from it
    attention: list  # (B, H, T, T), rows sum to 1; or as `model.attention` says


class RecurrentOutput(NamedTuple):
    """The results of a forward pass."""

    states: KerasTensor  # (B, T, D), the decoder's output; `logits` makes logits from it
    memory: KerasTensor  # (B, S, D'), the encoder's output
    cross_attention: list[KerasTensor]  # one (B, 1, T, S); row t: the token predicted at t
