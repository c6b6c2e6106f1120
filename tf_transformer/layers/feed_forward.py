"""Position-wise feed-forward network (paper section 3.3)."""

from typing import Any, ClassVar

import keras
from keras import KerasTensor

from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class FeedForward(ConfiguredLayer):
    """FFN(x) = max(0, x W₁ + b₁) W₂ + b₂ at every position (paper equation 2).

    An option in place of max(0, h), the paper's `relu`, is `gelu`: h Φ(h), with the normal
    distribution's Φ (Hendrycks & Gimpel 2016).

    Args:
        config: the configuration of the stack, or its fields by name. The layer reads `d_ff`, F,
            `activation`, and `feed_forward_dropout_rate`, or `dropout_rate`, of the hidden layer.
        **options: see `ConfiguredLayer`.

    Call arguments:
        x: float tensor (B, T, D).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).
    """

    short_names: ClassVar = {"dropout_rate": "feed_forward_dropout_rate"}

    def __init__(self, config: Config = None, **options: Any):
        super().__init__(config, **options)
        self.hidden = self._hidden_layer()
        self.dropout = Dropout(self.config.feed_forward_dropout_rate, dtype=self.dtype_policy)

    def _hidden_layer(self) -> keras.layers.Layer:
        """max(0, x W₁ + b₁): rows (R, D) to (R, F)."""
        activation, policy = self.config.activation, self.dtype_policy
        return keras.layers.Dense(self.config.d_ff, activation, dtype=policy, name="hidden")

    def build(self, input_shape: Shape) -> None:
        self.hidden.build(input_shape)
        size, policy = input_shape[-1], self.dtype_policy
        self.output_projection = keras.layers.Dense(size, dtype=policy, name="output")
        self.output_projection.build((*input_shape[:-1], self.config.d_ff))

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.activate(self.hidden(flatten_positions(x)))  # (B·T, F)
        hidden = self.dropout(hidden, training=training)
        return unflatten_positions(self.output_projection(hidden), like=x)  # (B, T, D)

    def activate(self, hidden: KerasTensor) -> KerasTensor:
        """The hidden layer (R, F) of the products; here `hidden` itself has applied max(0, h)."""
        return hidden
