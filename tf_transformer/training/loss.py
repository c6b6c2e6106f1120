"""Label-smoothed cross-entropy (paper section 5.4), summed over real tokens."""

from typing import NamedTuple

from keras import KerasTensor, ops, tree


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
    losses, log_probabilities = smoothed_cross_entropy(labels, logits, label_smoothing)
    label_log_probabilities = _at(labels, log_probabilities)
    best = ops.max(log_probabilities, axis=-1)
    correct = ops.cast(label_log_probabilities >= best, "float32")
    return TokenLosses(
        loss=ops.sum(losses * real),
        nll=-ops.sum(label_log_probabilities * real),
        correct=ops.sum(correct * real),
        tokens=ops.sum(real),
    )


def smoothed_cross_entropy(
    labels: KerasTensor, logits: KerasTensor, label_smoothing: float
) -> tuple[KerasTensor, KerasTensor]:
    """-(1 - ε) log p(label) - ε mean(log p), and log p, with a gradient of its own.

    The smoothed distribution (V numbers a token) is never built. The gradient is
    p - (1 - ε) · label - ε / V; written out as one exponential and one scatter it costs a
    fraction of what automatic differentiation of the gather spends on zeros.

    Args:
        labels: int tensor (N,).
        logits: float32 tensor (N, V).
        label_smoothing: ε.

    Returns:
        float32 tensor (N,) of losses in nats, and log p (N, V), through which no gradient goes.
    """
    share = label_smoothing / logits.shape[-1]

    @ops.custom_gradient
    def loss_and_log_probabilities(logits):
        log_p = ops.log_softmax(logits, axis=-1)  # (N, V)
        label_log_p = _at(labels, log_p)
        losses = -(1 - label_smoothing) * label_log_p
        if label_smoothing:
            losses -= label_smoothing * ops.mean(log_p, axis=-1)

        def gradient(*upstreams, upstream=None):
            # One array an output, or one tuple of them, or by name: backends differ.
            upstream = tree.flatten(upstreams if upstream is None else upstream)[0]  # (N,)
            dense = (ops.exp(log_p) - share) * upstream[:, None]  # (N, V)
            at_labels = (ops.exp(label_log_p) - share - (1 - label_smoothing)) * upstream
            return ops.scatter_update(dense, _label_positions(labels), at_labels)

        return (losses, log_p), gradient

    return loss_and_log_probabilities(logits)


def _label_positions(labels: KerasTensor) -> KerasTensor:
    return ops.stack([ops.arange(ops.size(labels), dtype="int32"), labels], axis=-1)  # (N, 2)


def _at(labels: KerasTensor, values: KerasTensor) -> KerasTensor:
    """values[n, labels[n]], (N,), as one gather; `take_along_axis` would copy all of `values`."""
    rows = ops.arange(ops.size(labels), dtype="int32") * values.shape[-1]
    return ops.take(ops.reshape(values, (-1,)), rows + labels)
