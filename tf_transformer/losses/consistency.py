"""Losses that run the model twice in training, and add the divergence of the two predictions.

The noise of the two runs differs. Outside training, these losses are the cross-entropy.
"""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.consistency import ConsistencyWeights
from tf_transformer.layers.shape import flatten_positions
from tf_transformer.losses.cross_entropy import (
    CrossEntropy,
    TokenLosses,
    WordDropout,
    sums_over_real,
)
from tf_transformer.text.special_ids import PAD_ID

R_DROP_WEIGHT = 5.0  # of the divergence: Liang et al. (2021), for translation
SIMCUT_WEIGHT, CUT_RATE = 3.0, 0.05  # Gao et al. (2022)


class Consistency(CrossEntropy):
    """The base class of losses with two predictions, p and q, for each token.

    Args:
        label_smoothing: ε.
        weight: weight of the divergence of p and q.
        word_dropout: hides input tokens of p, and of q if the subclass keeps `second`.
    """

    def __init__(
        self, label_smoothing: float, weight: float, word_dropout: WordDropout | None = None
    ):
        super().__init__(label_smoothing, word_dropout)
        self.weight = weight

    @property
    def weights(self) -> ConsistencyWeights:
        """The weights of the terms of the loss."""
        raise NotImplementedError

    def _of_training(
        self, model: keras.Model, inputs: Any, labels: KerasTensor, links: KerasTensor | None
    ) -> TokenLosses:
        labels = ops.reshape(ops.cast(labels, "int32"), (-1,))  # (N,), N = B·T
        (p, matrix), (q, _) = (
            model.factors(flatten_positions(model.run(noisy, training=True).states))
            for noisy in (self.noisy(inputs), self.second(inputs))
        )  # (N, D)
        matrix = ops.convert_to_tensor(ops.cast(matrix, p.dtype))
        consistency, epsilon = kernels.current().consistency, self.label_smoothing
        values = consistency(labels, p, q, matrix, epsilon, self.weights)
        return sums_over_real(values, ops.not_equal(labels, PAD_ID))

    def second(self, inputs: Any) -> Any:
        """Makes the inputs of q from the inputs of the batch."""
        return self.noisy(inputs)


class RDrop(Consistency):
    """(CE(p) + CE(q)) / 2 + weight · (KL(p || q) + KL(q || p)) / 4, where q has other dropout.

    This is half of the loss of Liang et al. 2021 (R-Drop, equation 4). So the cross-entropy has the
    same weight as without R-Drop. Liang et al. use the weight 5 for translation. `Consistency`
    describes the arguments.
    """

    @property
    def weights(self) -> ConsistencyWeights:
        return ConsistencyWeights(0.5, 0.5, self.weight / 4, self.weight / 4)


class SimCut(Consistency):
    """CE(p) + weight · KL(p || q), where q does not see some input tokens.

    Gao et al. 2022 (Bi-SimCut) set the embeddings of hidden tokens to zero. Here, hidden tokens
    become an id that no text has. Gao et al. use the weight 3 and the rate 0.05. Gradients flow
    through p and q.

    `cut` hides input tokens of q, in source and target, and `word_dropout` those of p.
    `Consistency` describes the other arguments.
    """

    def __init__(
        self,
        label_smoothing: float,
        weight: float,
        cut: WordDropout,
        word_dropout: WordDropout | None = None,
    ):
        super().__init__(label_smoothing, weight, word_dropout)
        self.cut = cut
        self.variables = [*self.variables, *cut.variables]

    def second(self, inputs: Any) -> Any:
        return self.cut(inputs)

    @property
    def weights(self) -> ConsistencyWeights:
        return ConsistencyWeights(1.0, 0.0, self.weight, 0.0)
