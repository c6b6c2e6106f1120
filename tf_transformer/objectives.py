"""Objectives: the losses that training minimises for models that predict the next token.

`CrossEntropy` is the paper's. The others run the model twice in training, with other noise each
time, and add the divergence of the two predictions. Outside training all are the cross-entropy.
"""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.kernels.cross_entropy import from_log_probabilities
from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.losses import TokenLosses, sums_over_real, token_losses
from tf_transformer.special_ids import PAD_ID, UNK_ID

HIDDEN_ID = UNK_ID  # in no text: bytes spell what the vocabulary lacks


class CrossEntropy:
    """Label-smoothed cross-entropy (paper section 5.4).

    Args:
        label_smoothing: ε, the weight of the uniform distribution in the target distribution.

    Attributes:
        variables: random states, which a checkpoint has to hold.

    Example:
        >>> from tf_transformer.models.transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> inputs = np.array([[5, 6, 2]]), np.array([[1, 7]])
        >>> float(CrossEntropy(0.1).losses(model, inputs, np.array([[7, 2]]), True).tokens)
        2.0
    """

    def __init__(self, label_smoothing: float = 0.0):
        self.label_smoothing = label_smoothing
        self.variables: list[keras.Variable] = []

    def losses(
        self, model: keras.Model, inputs: Any, labels: KerasTensor, training: bool
    ) -> TokenLosses:
        """The summed losses of a batch.

        Args:
            model: has `run(inputs, training).states`, float (B, T, D), and `output_embedding`.
            inputs: int tensors (B, S) and (B, T) of ids, or one of them, as the model takes them.
            labels: int tensor (B, T), the ids to predict; 0 = padding, which does not count.
            training: whether dropout is on.
        """
        states = model.run(inputs, training=training).states
        embeddings = model.output_embedding.embeddings
        return token_losses(labels, states, embeddings, self.label_smoothing)


class Consistency(CrossEntropy):
    """The base of objectives with two predictions, p and q, for each token.

    Args:
        label_smoothing: ε.
        weight: of the divergence of p and q.
    """

    def __init__(self, label_smoothing: float, weight: float):
        super().__init__(label_smoothing)
        self.weight = weight

    def losses(
        self, model: keras.Model, inputs: Any, labels: KerasTensor, training: bool
    ) -> TokenLosses:
        if not training:
            return super().losses(model, inputs, labels, training)
        labels = ops.reshape(ops.cast(labels, "int32"), (-1,))  # (N,), N = B·T
        log_p, log_q = (_log_probabilities(model, each) for each in (inputs, self.second(inputs)))
        losses, nll, correct = from_log_probabilities(labels, log_p, self.label_smoothing)
        others = from_log_probabilities(labels, log_q, self.label_smoothing).losses
        losses = self.combine(losses, others, log_p, log_q)
        return sums_over_real(losses, nll, correct, ops.not_equal(labels, PAD_ID))

    def second(self, inputs: Any) -> Any:
        """The inputs of q."""
        return inputs

    def combine(
        self, losses: KerasTensor, others: KerasTensor, log_p: KerasTensor, log_q: KerasTensor
    ) -> KerasTensor:
        """The loss of each token, float32 (N,).

        Args:
            losses: (N,), the cross-entropies of p.
            others: (N,), those of q.
            log_p: (N, V).
            log_q: (N, V).
        """
        raise NotImplementedError


class RDrop(Consistency):
    """(CE(p) + CE(q)) / 2 + weight · (KL(p || q) + KL(q || p)) / 4, with other dropout for q.

    This is half of the loss of Liang et al. 2021 (R-Drop, equation 4), so that the cross-entropy
    has the weight that it has alone. They take weight 5 for translation.
    """

    def combine(self, losses, others, log_p, log_q):
        both_ways = divergence(log_p, log_q) + divergence(log_q, log_p)
        return (losses + others) / 2 + self.weight / 4 * both_ways


class SimCut(Consistency):
    """CE(p) + weight · KL(p || q), where q has some tokens of its inputs hidden.

    Gao et al. 2022 (Bi-SimCut) set the embeddings of hidden tokens to zero; here they become the
    embedding of an id that is in no text. They take weight 3 and rate 0.05. Gradients flow through
    both p and q.

    Args:
        label_smoothing: ε.
        weight: of the divergence.
        rate: probability that a token is hidden, on both sides.
        seed: of the choice; drawn from Keras' global one when None.
    """

    def __init__(self, label_smoothing: float, weight: float, rate: float, seed: int | None = None):
        super().__init__(label_smoothing, weight)
        self.rate = rate
        self._seed = keras.random.SeedGenerator(seed)
        self.variables = [self._seed.state]

    def second(self, inputs):
        return keras.tree.map_structure(self._hide, inputs)

    def _hide(self, ids: KerasTensor) -> KerasTensor:
        chosen = keras.random.uniform(ops.shape(ids), seed=self._seed) < self.rate
        return ops.where(ops.logical_and(chosen, ids != PAD_ID), HIDDEN_ID, ids)

    def combine(self, losses, others, log_p, log_q):
        return losses + self.weight * divergence(log_p, log_q)


def make_objective(config: TrainConfig) -> CrossEntropy:
    """The objective that options name; call in the strategy's scope.

    Example:
        >>> from tf_transformer import TrainConfig
        >>> make_objective(TrainConfig(consistency="r_drop")).weight
        5.0
    """
    epsilon, weight = config.label_smoothing, config.consistency_weight
    if config.consistency == "r_drop":
        return RDrop(epsilon, weight or 5.0)
    if config.consistency == "simcut":
        return SimCut(epsilon, weight or 3.0, config.cut_rate)
    return CrossEntropy(epsilon)


def require_cross_entropy(config: TrainConfig) -> None:
    """Raises an `InputError` for options of objectives that a task does not use."""
    if config.consistency != "none":
        raise InputError(
            "train.consistency is for models that predict the next token: translation, parsing and "
            f"language_modeling. Expected none for this task, got {config.consistency}."
        )


def divergence(log_p: KerasTensor, log_q: KerasTensor) -> KerasTensor:
    """KL(p || q) = Σ p (log p - log q), (N,), of log-probabilities (N, V).

    Example:
        >>> p, q = np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]])
        >>> round(float(divergence(p, q)[0]), 4)
        0.1438
    """
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def _log_probabilities(model: keras.Model, inputs: Any) -> KerasTensor:
    """float32 (N, V), with dropout."""
    states = flatten_positions(model.run(inputs, training=True).states)
    logits = ops.cast(model.output_embedding.logits(states), "float32")
    return ops.log_softmax(logits, axis=-1)
