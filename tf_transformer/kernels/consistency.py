"""Losses of two predictions, p and q, for each token: cross-entropies and divergences.

The weights of the terms give the loss of R-Drop (Liang et al. 2021) or of SimCut (Gao et al. 2022);
see `tf_transformer.losses.consistency`.
"""

from typing import NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.cross_entropy import (
    TokenValues,
    from_log_probabilities,
    linear_terms,
    logits_of,
    negative_log_likelihood,
)
from tf_transformer.kernels.gradient import WithGradient, with_gradient


class ConsistencyWeights(NamedTuple):
    """The weight of each term of the loss."""

    p: float  # of the cross-entropy of p
    q: float  # of the cross-entropy of q
    pq: float  # of KL(p || q)
    qp: float  # of KL(q || p)


def plain_consistency(
    labels: KerasTensor,
    states_p: KerasTensor,
    states_q: KerasTensor,
    embeddings: KerasTensor,
    label_smoothing: float,
    weights: ConsistencyWeights,
) -> TokenValues:
    """The weighted sum of CE(p), CE(q), KL(p || q) and KL(q || p).

    `plain_cross_entropy` describes the arguments; `states_p` give the logits of p, and `states_q`
    those of q. The sum is `losses` of the result, and p gives `nll` and `correct`.
    """
    log_p, log_q = (
        ops.log_softmax(logits_of(states, embeddings), axis=-1) for states in (states_p, states_q)
    )  # (N, V)
    of_p, of_q = (from_log_probabilities(labels, log, label_smoothing) for log in (log_p, log_q))
    losses = weights.p * of_p.losses + weights.q * of_q.losses
    losses += weights.pq * divergence(log_p, log_q) + weights.qp * divergence(log_q, log_p)
    return of_p._replace(losses=losses)


def divergence(log_p: KerasTensor, log_q: KerasTensor) -> KerasTensor:
    """KL(p || q) = Σ p (log p - log q), nats: log-probabilities (N, V) to (N,)."""
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def consistency(
    labels: KerasTensor,
    states_p: KerasTensor,
    states_q: KerasTensor,
    embeddings: KerasTensor,
    label_smoothing: float,
    weights: ConsistencyWeights,
) -> TokenValues:
    """`plain_consistency` with about half as many passes over the matrices of N · V logits.

    Let a be the logits of p, b the logits of q, and d = a - b. Then
    KL(p || q) = Σ p·d - log Σ exp(a) + log Σ exp(b), and KL(q || p) is the same with exchanged
    names. So the gradient by a is p·(x·d + y) - z·q, with one x, y and z for each token. The
    gradient by b is the same with exchanged names. As in `cross_entropy`, the terms that are linear
    in the logits need no matrix.
    """
    if keras.backend.standardize_dtype(states_p.dtype) != "float32":
        # In half precision, rounding would lose the difference of p and q in the gradients.
        return plain_consistency(labels, states_p, states_q, embeddings, label_smoothing, weights)

    @with_gradient
    def nonlinear_terms(
        states_p: KerasTensor, states_q: KerasTensor, embeddings: KerasTensor
    ) -> WithGradient:
        a, b = logits_of(states_p, embeddings), logits_of(states_q, embeddings)  # (N, V)
        p, q = ops.softmax(a, axis=-1), ops.softmax(b, axis=-1)
        nll, a_of_labels, correct = negative_log_likelihood(p, a, labels)
        nll_q, b_of_labels, _ = negative_log_likelihood(q, b, labels)
        log_sum_a, log_sum_b = nll + a_of_labels, nll_q + b_of_labels  # log Σ exp, (N,)
        d = a - b
        losses = weights.p * log_sum_a + weights.q * log_sum_b
        losses += (weights.qp - weights.pq) * (log_sum_a - log_sum_b)
        p_d = ops.sum(p * d, axis=-1) if weights.pq else ops.zeros_like(nll)
        q_d = ops.sum(q * d, axis=-1) if weights.qp else ops.zeros_like(nll)
        losses += weights.pq * p_d - weights.qp * q_d

        def gradient(upstream: KerasTensor, *_: KerasTensor) -> tuple[KerasTensor, ...]:
            of_p = (weights.p + weights.qp - weights.pq * p_d)[:, None]
            of_q = (weights.q + weights.pq + weights.qp * q_d)[:, None]
            by_a = p * (weights.pq * d + of_p)
            by_b = q * (of_q - weights.qp * d) if weights.qp else q * of_q
            if weights.qp:
                by_a -= weights.qp * q
            if weights.pq:
                by_b -= weights.pq * p
            upstream = upstream[:, None]
            by_embeddings = ops.matmul(ops.transpose(by_a), states_p * upstream)
            by_embeddings += ops.matmul(ops.transpose(by_b), states_q * upstream)
            return (
                ops.matmul(by_a, embeddings) * upstream,
                ops.matmul(by_b, embeddings) * upstream,
                by_embeddings,
            )

        return (losses, nll, correct), gradient

    losses, nll, correct = nonlinear_terms(states_p, states_q, embeddings)
    states = weights.p * states_p + weights.q * states_q
    losses -= linear_terms(labels, states, embeddings, 1 - label_smoothing, label_smoothing)
    return TokenValues(losses, ops.stop_gradient(nll), correct)
