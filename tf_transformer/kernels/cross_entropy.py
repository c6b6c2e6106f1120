"""Label-smoothed cross-entropy (paper section 5.4)."""

from typing import NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import WithGradient, with_gradient

UNDERFLOW = 1e-30  # smaller float32 probabilities may have lost digits


class TokenValues(NamedTuple):
    """Values of each token. Gradients flow through `losses` only."""

    losses: KerasTensor  # float32 (N,), nats, label-smoothed
    nll: KerasTensor  # float32 (N,), nats: -log p(label)
    correct: KerasTensor  # float32 (N,): 1 where the label has the largest logit, else 0


def plain_cross_entropy(
    labels: KerasTensor, states: KerasTensor, embeddings: KerasTensor, label_smoothing: float
) -> TokenValues:
    """-(1 - ε) log p(label) - ε mean(log p), with logits = states · embeddingsᵀ (section 3.4).

    Args:
        labels: int tensor (N,).
        states: float tensor (N, D).
        embeddings: tensor (V, D) of the same dtype.
        label_smoothing: ε.

    Example:
        >>> states, embeddings = np.zeros((1, 3), "float32"), np.ones((4, 3), "float32")
        >>> values = plain_cross_entropy(np.array([1]), states, embeddings, label_smoothing=0.1)
        >>> round(float(values.nll[0]), 4)  # ln 4
        1.3863
    """
    logits = logits_of(states, embeddings)  # (N, V)
    return from_log_probabilities(labels, ops.log_softmax(logits, axis=-1), label_smoothing)


def from_log_probabilities(
    labels: KerasTensor, log_p: KerasTensor, label_smoothing: float
) -> TokenValues:
    """-(1 - ε) log p(label) - ε mean(log p) of log-probabilities (N, V)."""
    log_p_of_labels = label_values(log_p, labels)
    losses = -(1 - label_smoothing) * log_p_of_labels - label_smoothing * ops.mean(log_p, axis=-1)
    correct = ops.cast(log_p_of_labels >= ops.max(log_p, axis=-1), "float32")
    return TokenValues(losses, ops.stop_gradient(-log_p_of_labels), correct)


def cross_entropy(
    labels: KerasTensor, states: KerasTensor, embeddings: KerasTensor, label_smoothing: float
) -> TokenValues:
    """`plain_cross_entropy` with two passes over the logits instead of about ten.

    With logits z, the loss is log Σ exp(z) - (1 - ε) · z[label] - ε · mean(z). The first term needs
    all N · V logits, and its gradient is p. The second term multiplies a state with one embedding,
    the third with the sum of all embeddings.
    """
    half = keras.backend.standardize_dtype(states.dtype) != "float32"
    in_first_term = float(half)  # the share of z[label] that the first term subtracts

    @with_gradient
    def first_term(states: KerasTensor, embeddings: KerasTensor) -> WithGradient:
        logits = logits_of(states, embeddings)  # (N, V)
        p = ops.softmax(logits, axis=-1)
        nll, of_labels, correct = negative_log_likelihood(p, logits, labels)

        def gradient(upstream: KerasTensor, *_: KerasTensor) -> tuple[KerasTensor, ...]:
            # In half precision, 1 is subtracted from p(label) before p is rounded. In float32, it
            # is subtracted after the products, which saves a copy of p.
            by_logits = ops.cast(_minus_labels(p, labels), states.dtype) if half else p
            upstream = ops.cast(upstream, states.dtype)[:, None]
            by_embeddings = ops.matmul(ops.transpose(by_logits), states * upstream)
            return ops.matmul(by_logits, embeddings) * upstream, by_embeddings

        return (nll + (1 - in_first_term) * of_labels, nll, correct), gradient

    losses, nll, correct = first_term(states, embeddings)
    of_label = 1 - label_smoothing - in_first_term
    losses -= linear_terms(labels, states, embeddings, of_label, label_smoothing)
    return TokenValues(losses, ops.stop_gradient(nll), correct)


def logits_of(states: KerasTensor, embeddings: KerasTensor) -> KerasTensor:
    """Logits, states · embeddingsᵀ: float32 tensor (N, V)."""
    return ops.cast(ops.matmul(states, ops.transpose(embeddings)), "float32")


def linear_terms(
    labels: KerasTensor,
    states: KerasTensor,
    embeddings: KerasTensor,
    of_label: float,
    of_mean: float,
) -> KerasTensor:
    """of_label · z[label] + of_mean · mean(z), float32 (N,), computed without the logits z."""
    states, embeddings = (ops.cast(x, "float32") for x in (states, embeddings))
    total = of_label * ops.sum(states * ops.take(embeddings, labels, axis=0), axis=-1)
    if of_mean:
        total += of_mean / embeddings.shape[0] * ops.matmul(states, ops.sum(embeddings, axis=0))
    return total


def negative_log_likelihood(
    p: KerasTensor, logits: KerasTensor, labels: KerasTensor
) -> tuple[KerasTensor, KerasTensor, KerasTensor]:
    """-log p(label), the logit of each label, and 1 where this logit is the largest, else 0.

    p (N, V) is the softmax of the logits. The results are float32 (N,).
    """
    highest, of_labels = ops.max(logits, -1), label_values(logits, labels)
    p_of_labels = label_values(p, labels)
    nll = -ops.log(ops.maximum(p_of_labels, UNDERFLOW))
    # Where p underflows, this value of more than 69 nats is at most log V too small.
    nll = ops.where(p_of_labels > UNDERFLOW, nll, highest - of_labels)
    return nll, of_labels, ops.cast(of_labels >= highest, "float32")


def label_values(values: KerasTensor, labels: KerasTensor) -> KerasTensor:
    """values[n, labels[n]] of a tensor (N, V): (N,).

    One gather from the flat tensor; `take_along_axis` would copy all of `values`.
    """
    rows = ops.arange(ops.size(labels), dtype="int32") * values.shape[-1]
    return ops.take(ops.reshape(values, (-1,)), rows + labels)


def _minus_labels(p: KerasTensor, labels: KerasTensor) -> KerasTensor:
    """The matrix p (N, V) minus 1 at the labels."""
    indices = ops.stack([ops.arange(ops.size(labels), dtype="int32"), labels], axis=-1)  # (N, 2)
    return ops.scatter_update(p, indices, label_values(p, labels) - 1.0)
