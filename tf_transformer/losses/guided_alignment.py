"""Guided alignment: one head of the decoder learns given word alignments (Chen et al. 2016)."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.losses.cross_entropy import (
    CrossEntropy,
    TokenLosses,
    WordDropout,
    token_losses,
)

SMALLEST = 1e-9  # attention whose logarithm is finite


class GuidedAlignment(CrossEntropy):
    """Cross-entropy of the target tokens, plus `weight` times `alignment_loss` of one head.

    This is the loss of Garg et al. 2019 ("Jointly Learning to Align and Translate with Transformer
    Models", section 3.2), whose weight is 0.05. Outside training, it is the cross-entropy.

    Differs from Garg et al.: the guided head sees the target tokens before the token that it
    aligns, as in decoding, and not the whole target.

    Args:
        label_smoothing: ε of the cross-entropy.
        weight: weight of the alignment loss.
        layer: layer of the decoder, from 0, or from the last with -1.
        head: head of this layer, from 0; -1: the mean of all heads.
        word_dropout: hides input tokens in training; None: hides nothing.
    """

    def __init__(
        self,
        label_smoothing: float,
        weight: float,
        layer: int = -2,
        head: int = 0,
        word_dropout: WordDropout | None = None,
    ):
        super().__init__(label_smoothing, word_dropout)
        self.weight, self.layer, self.head = weight, layer, head

    def _of_training(
        self, model: keras.Model, inputs: Any, labels: KerasTensor, links: KerasTensor | None
    ) -> TokenLosses:
        if links is None:
            return super()._of_training(model, inputs, labels, links)
        output = model.run(self.noisy(inputs), training=True)
        rows, matrix = model.factors(output.states)
        losses = token_losses(labels, rows, matrix, self.label_smoothing)
        attention = of_head(output.cross_attention[self.layer], self.head)
        return losses._replace(loss=losses.loss + self.weight * alignment_loss(attention, links))


def of_head(weights: KerasTensor, head: int) -> KerasTensor:
    """The attention (B, T, S) of one head of weights (B, H, T, S); -1: the mean of all heads."""
    return ops.mean(weights, axis=1) if head < 0 else weights[:, head]


def alignment_loss(attention: KerasTensor, links: KerasTensor) -> KerasTensor:
    """-Σ Gₜₛ ln Aₜₛ over target pieces t and source pieces s (Garg et al. 2019, equation 7).

    Row t of G is uniform over the source pieces that are linked to t. A target piece without links
    adds nothing.

    Args:
        attention: A, float tensor (B, T, S), rows sum to 1.
        links: int tensor (B, 4·M) with four numbers for each of M links: the first source piece and
            the piece after the last one, then the same of the target. Equal numbers link nothing.

    Returns:
        A float32 scalar, nats, summed over target pieces.

    Example:
        >>> attention = np.float32([[[0.25, 0.75], [0.5, 0.5]]])
        >>> float(alignment_loss(attention, np.int32([[1, 2, 0, 1]])))  # -ln 0.75
        0.28768...
    """
    _, length, size = ops.shape(attention)
    batch, width = ops.shape(links)
    links = ops.reshape(links, (batch, width // 4, 4))  # (B, M, 4)
    source = _marks(links[..., 0], links[..., 1], size)  # (B, M, S)
    target = _marks(links[..., 2], links[..., 3], length)  # (B, M, T)
    linked = ops.cast(ops.einsum("bmt,bms->bts", target, source) > 0, "float32")
    shares = linked / ops.maximum(ops.sum(linked, axis=-1, keepdims=True), 1.0)
    return -ops.sum(shares * ops.log(ops.cast(attention, "float32") + SMALLEST))


def _marks(first: KerasTensor, end: KerasTensor, size: int | KerasTensor) -> KerasTensor:
    """1.0 from `first` (B, M) up to before `end`, else 0.0: float32 (B, M, size)."""
    places = ops.arange(size, dtype="int32")
    is_inside = ops.logical_and(places >= first[..., None], places < end[..., None])
    return ops.cast(is_inside, "float32")
