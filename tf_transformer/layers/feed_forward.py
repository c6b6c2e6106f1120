"""Position-wise feed-forward network (paper section 3.3)."""

import keras
from keras import KerasTensor

from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions


@keras.saving.register_keras_serializable(package="tf_transformer")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W₁ + b₁) W₂ + b₂ at every position (paper equation 2).

    Args:
        d_ff: size of the hidden layer, F.
        dropout_rate: dropout on the hidden layer (an option; the paper has none).

    Call arguments:
        x: float tensor (B, T, D).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).
    """

    def __init__(self, d_ff: int, dropout_rate: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.dropout_rate = dropout_rate
        self.hidden = keras.layers.Dense(
            d_ff, activation="relu", dtype=self.dtype_policy, name="hidden"
        )
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.hidden.build(input_shape)
        self.output_projection = keras.layers.Dense(
            input_shape[-1], dtype=self.dtype_policy, name="output"
        )
        self.output_projection.build((*input_shape[:-1], self.d_ff))

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.dropout(self.hidden(flatten_positions(x)), training=training)  # (B·T, F)
        return unflatten_positions(self.output_projection(hidden), like=x)  # (B, T, D)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"d_ff": self.d_ff, "dropout_rate": self.dropout_rate}
