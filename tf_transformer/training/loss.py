"""Label-smoothed cross-entropy (paper section 5.4), summed over real tokens."""

from typing import NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import with_gradient
from tf_transformer.layers.rows import to_rows

UNDERFLOW = 1e-30  # a float32 probability below it may have lost digits, or all


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
    labels: KerasTensor,
    states: KerasTensor,
    embeddings: KerasTensor,
    label_smoothing: float = 0.0,
    pad_id: int = 0,
) -> TokenLosses:
    """Cross-entropy against (1 - ε) · label + ε · uniform over the vocabulary (section 5.4).

    Args:
        labels: int tensor (B, T); `pad_id` where there is no token.
        states: float tensor (B, T, D); their products with the embeddings are the logits.
        embeddings: float tensor (V, D).
        label_smoothing: ε.
        pad_id: label that does not count.

    Returns:
        `TokenLosses`, float32 sums over the real tokens.

    Example:
        >>> states, embeddings = np.zeros((1, 2, 3), "float32"), np.ones((4, 3), "float32")
        >>> losses = token_losses(np.array([[1, 0]]), states, embeddings)
        >>> float(losses.nll), float(losses.tokens)  # ln 4, and one real token
        (1.3862943649291992, 1.0)
    """
    labels = ops.reshape(ops.cast(labels, "int32"), (-1,))  # (N,), N = B·T
    states = to_rows(ops.convert_to_tensor(states))  # (N, D)
    embeddings = ops.convert_to_tensor(ops.cast(embeddings, states.dtype))  # (V, D)
    real = ops.cast(ops.not_equal(labels, pad_id), "float32")  # (N,)
    losses, nll, correct = smoothed_cross_entropy(labels, states, embeddings, label_smoothing)
    return TokenLosses(
        loss=ops.sum(losses * real),
        nll=ops.sum(nll * real),
        correct=ops.sum(correct * real),
        tokens=ops.sum(real),
    )


def smoothed_cross_entropy(
    labels: KerasTensor, states: KerasTensor, embeddings: KerasTensor, label_smoothing: float
) -> tuple[KerasTensor, KerasTensor, KerasTensor]:
    """-(1 - ε) log p(label) - ε mean(log p), from log Σ exp(logits) and two products a token.

    With z for logits it is log Σ exp(z) - (1 - ε) · z[label] - ε · mean(z). Only the first of these
    needs all N · V logits, and its gradient is p. The others are products of a state with one
    embedding, and with the sum of all embeddings.

    Args:
        labels: int tensor (N,).
        states: float tensor (N, D).
        embeddings: tensor (V, D) of the same dtype.
        label_smoothing: ε.

    Returns:
        float32 tensors (N,): losses in nats; -log p(label); and 1 where the label has the largest
        logit, else 0. Gradients go through the first alone.
    """
    half = keras.backend.standardize_dtype(states.dtype) != "float32"
    in_first_term = float(half)  # how much of z[label] is subtracted there

    @with_gradient
    def first_term_and_figures(states, embeddings):
        logits = ops.cast(ops.matmul(states, ops.transpose(embeddings)), "float32")  # (N, V)
        p = ops.softmax(logits, axis=-1)
        highest, of_labels, p_of_labels = ops.max(logits, -1), _at(labels, logits), _at(labels, p)
        nll = -ops.log(ops.maximum(p_of_labels, UNDERFLOW))
        # Where p underflows: at most log V too little, of more than 69 nats.
        nll = ops.where(p_of_labels > UNDERFLOW, nll, highest - of_labels)
        correct = ops.cast(of_labels >= highest, "float32")

        def gradient(upstream, *_):
            # In half precision a label's p and what is subtracted of it must meet before they are
            # rounded. In float32 they may meet after the products, which saves a copy of p.
            by_logits = ops.cast(_less_labels(p, labels), states.dtype) if half else p
            upstream = ops.cast(upstream, states.dtype)[:, None]
            by_embeddings = ops.matmul(ops.transpose(by_logits), states * upstream)
            return ops.matmul(by_logits, embeddings) * upstream, by_embeddings

        return (nll + (1 - in_first_term) * of_labels, nll, correct), gradient

    losses, nll, correct = first_term_and_figures(states, embeddings)
    states, embeddings = (ops.cast(x, "float32") for x in (states, embeddings))
    of_labels = ops.sum(states * ops.take(embeddings, labels, axis=0), axis=-1)
    losses -= (1 - label_smoothing - in_first_term) * of_labels
    if label_smoothing:
        of_all = ops.matmul(states, ops.sum(embeddings, axis=0))
        losses -= label_smoothing / embeddings.shape[0] * of_all
    return losses, nll, correct


def _at(labels: KerasTensor, values: KerasTensor) -> KerasTensor:
    """values[n, labels[n]], (N,), as one gather; `take_along_axis` would copy all of `values`."""
    rows = ops.arange(ops.size(labels), dtype="int32") * values.shape[-1]
    return ops.take(ops.reshape(values, (-1,)), rows + labels)


def _less_labels(p: KerasTensor, labels: KerasTensor) -> KerasTensor:
    """The matrix p (N, V), 1 less at the labels."""
    places = ops.stack([ops.arange(ops.size(labels), dtype="int32"), labels], axis=-1)  # (N, 2)
    return ops.scatter_update(p, places, _at(labels, p) - 1.0)
