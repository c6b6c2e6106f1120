"""Label-smoothed cross-entropy (paper section 5.4), summed over real tokens."""

from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.layers.gradient import with_gradient


class TokenLosses(NamedTuple):
    """Sums over the real tokens of a batch; divide by `tokens` for means.

    Sums and not means, because the mean over several replicas' tokens is the sum of all sums
    over the sum of all counts.
    """

    loss: KerasTensor  # float32 scalar, nats, label-smoothed: what training minimises
    nll: KerasTensor  # float32 scalar, nats, against the labels alone: its mean's exp is perplexity
    correct: KerasTensor  # float32 scalar, tokens whose label had the largest logit
    tokens: KerasTensor  # float32 scalar, real tokens


def token_losses(
    labels: KerasTensor, logits: KerasTensor, label_smoothing: float = 0.0, pad_id: int = 0
) -> TokenLosses:
    """Cross-entropy against (1 - ε) · label + ε · uniform over the vocabulary (section 5.4).

    Args:
        labels: int tensor (B, T); `pad_id` where there is no token.
        logits: float tensor (B, T, V).
        label_smoothing: ε.
        pad_id: label that does not count.

    Returns:
        `TokenLosses`, float32 sums over the real tokens.

    Example:
        >>> losses = token_losses(np.array([[1, 0]]), np.zeros((1, 2, 4), "float32"))
        >>> float(losses.nll), float(losses.tokens)  # ln 4, and one real token
        (1.3862943649291992, 1.0)
    """
    labels = ops.reshape(ops.cast(labels, "int32"), (-1,))  # (N,), N = B·T
    logits = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))  # (N, V)
    real = ops.cast(ops.not_equal(labels, pad_id), "float32")  # (N,)
    losses, nll, correct = smoothed_cross_entropy(labels, logits, label_smoothing)
    return TokenLosses(
        loss=ops.sum(losses * real),
        nll=ops.sum(nll * real),
        correct=ops.sum(correct * real),
        tokens=ops.sum(real),
    )


def smoothed_cross_entropy(
    labels: KerasTensor, logits: KerasTensor, label_smoothing: float
) -> tuple[KerasTensor, KerasTensor, KerasTensor]:
    """-(1 - ε) log p(label) - ε mean(log p), with a gradient of its own.

    Neither the smoothed distribution nor log p (V numbers a token each) is ever built: the softmax
    is, because the gradient is p - (1 - ε) · label - ε / V, and its largest value tells what
    all logits have to be lowered by to be log-probabilities.

    Args:
        labels: int tensor (N,).
        logits: float32 tensor (N, V).
        label_smoothing: ε.

    Returns:
        float32 tensors (N,): losses in nats; -log p(label); and 1 where the label has the largest
        logit, else 0. Gradients go through the first alone.
    """
    share = label_smoothing / logits.shape[-1]

    @with_gradient
    def losses_and_figures(logits):
        p = ops.softmax(logits, axis=-1)  # (N, V)
        highest = ops.max(logits, axis=-1)  # (N,)
        normalizer = highest - ops.log(ops.max(p, axis=-1))  # log Σ exp(logits)
        of_labels = _at(labels, logits)
        nll = normalizer - of_labels
        losses = (1 - label_smoothing) * nll
        if label_smoothing:
            losses += label_smoothing * (normalizer - ops.mean(logits, axis=-1))

        def gradient(upstream, *_):  # (N,), of the losses
            dense = (p - share) * upstream[:, None]  # (N, V)
            # Not read from p, which TensorFlow may overwrite once nothing else needs it.
            at_labels = (ops.exp(-nll) - share - (1 - label_smoothing)) * upstream
            return ops.scatter_update(dense, _label_positions(labels), at_labels)

        correct = ops.cast(of_labels >= highest, "float32")
        return (losses, nll, correct), gradient

    return losses_and_figures(logits)


def _label_positions(labels: KerasTensor) -> KerasTensor:
    return ops.stack([ops.arange(ops.size(labels), dtype="int32"), labels], axis=-1)  # (N, 2)


def _at(labels: KerasTensor, values: KerasTensor) -> KerasTensor:
    """values[n, labels[n]], (N,), as one gather; `take_along_axis` would copy all of `values`."""
    rows = ops.arange(ops.size(labels), dtype="int32") * values.shape[-1]
    return ops.take(ops.reshape(values, (-1,)), rows + labels)
