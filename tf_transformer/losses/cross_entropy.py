"""Label-smoothed cross-entropy (paper section 5.4), summed over tokens or over texts."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.cross_entropy import TokenValues
from tf_transformer.layers.shape import flatten_positions
from tf_transformer.text.special_ids import PAD_ID, UNK_ID

HIDDEN_ID = UNK_ID  # no text has this id: bytes spell what the vocabulary lacks


class TokenLosses(NamedTuple):
    """Sums over the tokens of a batch, without padding. Divide by `tokens` for means.

    For a mean over several replicas, add the sums of all replicas and divide by the sum of their
    `tokens`.
    """

    loss: KerasTensor  # float32 scalar, nats, label-smoothed; training minimizes it
    nll: KerasTensor  # float32 scalar, nats, unsmoothed; perplexity = exp(nll / tokens)
    correct: KerasTensor  # float32 scalar, number of tokens whose label has the largest logit
    tokens: KerasTensor  # float32 scalar, number of tokens without padding


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
        states: float tensor (B, T, D). The logits are its products with the embeddings.
        embeddings: float tensor (V, D).
        label_smoothing: ε.
        pad_id: the label of padding, which does not count.

    Example:
        >>> states, embeddings = np.zeros((1, 2, 3), "float32"), np.ones((4, 3), "float32")
        >>> losses = token_losses(np.array([[1, 0]]), states, embeddings)
        >>> float(losses.nll), float(losses.tokens)  # ln 4, and one real token
        (1.3862943649291992, 1.0)
    """
    labels = ops.reshape(ops.cast(labels, "int32"), (-1,))  # (N,), N = B·T
    states = flatten_positions(ops.convert_to_tensor(states))  # (N, D)
    embeddings = ops.convert_to_tensor(ops.cast(embeddings, states.dtype))  # (V, D)
    real = ops.not_equal(labels, pad_id)  # (N,)
    values = kernels.current().cross_entropy(labels, states, embeddings, label_smoothing)
    return sums_over_real(values, real)


class WordDropout:
    """Replaces random input tokens by an id that no text has (Gal and Ghahramani 2016).

    Args:
        rate: probability that a token of source or target is hidden. Padding is never hidden.
        seed: seed of the choice; None: drawn from Keras' global seed.
    """

    def __init__(self, rate: float, seed: int | None = None):
        self.rate = rate
        self._seed = keras.random.SeedGenerator(seed)
        self.variables = [self._seed.state]  # which a checkpoint must hold

    def __call__(self, inputs: Any) -> Any:
        """Hides tokens of the inputs, one or several int tensors (B, T) of ids."""
        return keras.tree.map_structure(self._hide, inputs)

    def _hide(self, ids: KerasTensor) -> KerasTensor:
        chosen = keras.random.uniform(ops.shape(ids), seed=self._seed) < self.rate
        return ops.where(ops.logical_and(chosen, ids != PAD_ID), HIDDEN_ID, ids)


class CrossEntropy:
    """Label-smoothed cross-entropy (paper section 5.4).

    Args:
        label_smoothing: ε, the weight of the uniform distribution in the target distribution.
        word_dropout: hides input tokens in training; None: hides nothing.

    Example:
        >>> from tf_transformer.models.transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> inputs = np.array([[5, 6, 2]]), np.array([[1, 7]])
        >>> float(CrossEntropy(0.1).losses(model, inputs, np.array([[7, 2]]), True).tokens)
        2.0
    """

    def __init__(self, label_smoothing: float = 0.0, word_dropout: WordDropout | None = None):
        self.label_smoothing = label_smoothing
        self.word_dropout = word_dropout
        # Random states, which a checkpoint must hold.
        self.variables = list(word_dropout.variables) if word_dropout else []

    def losses(
        self,
        model: keras.Model,
        inputs: Any,
        labels: KerasTensor,
        training: bool,
        links: KerasTensor | None = None,
    ) -> TokenLosses:
        """Sums the losses of a batch; see `TokenLosses`. Only `GuidedAlignment` reads links.

        A model has `run(inputs, training).states`, float (B, T, D), and `factors`. It reads inputs,
        int tensors (B, S) and (B, T) or one of them, and predicts labels (B, T); 0 = padding, which
        does not count. Outside training, the loss is the cross-entropy of each subclass, too.
        """
        if training:
            return self._of_training(model, inputs, labels, links)
        return self._plain(model, inputs, labels, training=False)

    def _of_training(
        self, model: keras.Model, inputs: Any, labels: KerasTensor, links: KerasTensor | None
    ) -> TokenLosses:
        return self._plain(model, self.noisy(inputs), labels, training=True)

    def _plain(
        self, model: keras.Model, inputs: Any, labels: KerasTensor, training: bool
    ) -> TokenLosses:
        rows, matrix = model.factors(model.run(inputs, training=training).states)
        return token_losses(labels, rows, matrix, self.label_smoothing)

    def noisy(self, inputs: Any) -> Any:
        """Applies word dropout to the inputs of training."""
        return self.word_dropout(inputs) if self.word_dropout else inputs


def label_losses(labels: KerasTensor, logits: KerasTensor, label_smoothing: float) -> TokenLosses:
    """Cross-entropy for texts with one label each. Each text counts as one token.

    Labels are int (B, 1), from 1 on. Rows with 0 do not count. The softmax of the logits (B, C)
    gives the probability of each label.
    """
    logits = ops.cast(logits, "float32")
    real = labels[:, 0] > 0  # (B,)
    targets = ops.one_hot(labels[:, 0] - 1, logits.shape[1])  # (B, C), zeros where not real
    correct = ops.equal(ops.argmax(logits, axis=-1), ops.argmax(targets, axis=-1))
    losses, nll = (
        keras.losses.categorical_crossentropy(
            targets, logits, from_logits=True, label_smoothing=smoothing
        )
        for smoothing in (label_smoothing, 0.0)
    )
    return sums_over_real(TokenValues(losses, nll, correct), real)


def decision_losses(
    decisions: KerasTensor, logits: KerasTensor, label_smoothing: float
) -> TokenLosses:
    """Cross-entropy for texts with any number of labels. Each decision counts as one token.

    Decisions are int (B, C): 2 for a label that the text has, 1 for a label that it lacks. Rows
    with 0 do not count. The sigmoid of the logits (B, C) gives the probability of each label.
    """
    logits = ops.cast(logits, "float32")
    targets = ops.cast(ops.equal(decisions, 2), "float32")
    losses, nll = (
        ops.binary_crossentropy(targets * (1 - smoothing) + smoothing / 2, logits, from_logits=True)
        for smoothing in (label_smoothing, 0.0)
    )
    correct = ops.equal(logits > 0, targets > 0)
    return sums_over_real(TokenValues(losses, nll, correct), decisions > 0)


def sums_over_real(values: TokenValues, real: KerasTensor) -> TokenLosses:
    """Sums values over the elements where `real` is True."""
    real = ops.cast(real, "float32")
    values = values._replace(correct=ops.cast(values.correct, "float32"))
    loss, nll, correct = (ops.sum(x * real) for x in values)
    return TokenLosses(loss, nll, correct, ops.sum(real))
