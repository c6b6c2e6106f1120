"""Label-smoothed cross-entropy (paper section 5.4), summed over real tokens."""

from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.special_ids import PAD_ID


class TokenLosses(NamedTuple):
    """Sums over the real tokens of a batch; divide by `tokens` for means.

    The mean over the tokens of several replicas is the sum of all sums over the sum of all counts;
    it is not the mean of their means.
    """

    loss: KerasTensor  # float32 scalar, nats, label-smoothed: minimised by training
    nll: KerasTensor  # float32 scalar, nats, against the labels alone: its mean's exp is perplexity
    correct: KerasTensor  # float32 scalar, tokens whose label had the largest logit
    tokens: KerasTensor  # float32 scalar, real tokens


def token_losses(
    labels: KerasTensor,
    states: KerasTensor,
    embeddings: KerasTensor,
    label_smoothing: float = 0.0,
    pad_id: int = PAD_ID,
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
    states = flatten_positions(ops.convert_to_tensor(states))  # (N, D)
    embeddings = ops.convert_to_tensor(ops.cast(embeddings, states.dtype))  # (V, D)
    real = ops.cast(ops.not_equal(labels, pad_id), "float32")  # (N,)
    cross_entropy = kernels.current().cross_entropy
    losses, nll, correct = cross_entropy(labels, states, embeddings, label_smoothing)
    return TokenLosses(
        loss=ops.sum(losses * real),
        nll=ops.sum(nll * real),
        correct=ops.sum(correct * real),
        tokens=ops.sum(real),
    )
