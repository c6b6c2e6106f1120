"""Training metrics: a mean over tokens, and its perplexity."""

from typing import Any

import keras
from keras import KerasTensor, ops


@keras.saving.register_keras_serializable(package="tf_transformer")
class TokenMean(keras.metrics.Metric):
    """The mean over tokens, exact for batches and replicas of unequal size.

    Args:
        exponential: report exp(mean). For a mean loss in nats, this is the perplexity.

    Example:
        >>> metric = TokenMean()
        >>> metric.update_state(6.0, 2.0)
        >>> metric.update_state(0.0, 1.0)
        >>> float(metric.result())
        2.0
    """

    def __init__(self, exponential: bool = False, name: str | None = None, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.exponential = exponential
        self.total = self.add_weight(name="total", initializer="zeros")
        self.tokens = self.add_weight(name="tokens", initializer="zeros")

    def update_state(self, total: KerasTensor, tokens: KerasTensor) -> None:
        """Adds the sum over the tokens of a batch, and their number, both scalars."""
        self.total.assign_add(ops.cast(total, self.dtype))
        self.tokens.assign_add(ops.cast(tokens, self.dtype))

    def result(self) -> KerasTensor:
        mean = ops.divide_no_nan(self.total.value, self.tokens.value)
        return ops.exp(mean) if self.exponential else mean

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"exponential": self.exponential}
