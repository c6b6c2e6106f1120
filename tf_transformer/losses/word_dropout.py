"""Noise on the input tokens of training."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.text.special_ids import PAD_ID, UNK_ID

HIDDEN_ID = UNK_ID  # no text has this id: bytes spell what the vocabulary lacks


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
