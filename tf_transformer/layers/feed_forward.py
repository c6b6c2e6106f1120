"""Position-wise feed-forward network (paper section 3.3)."""

from typing import Literal

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import silu
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions
from tf_transformer.layers.initializers import ConcatenatedInitializer

Activation = Literal["relu", "gelu", "swiglu"]


@keras.saving.register_keras_serializable(package="tf_transformer")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W₁ + b₁) W₂ + b₂ at every position (paper equation 2).

    Options in place of max(0, h), the paper's `relu`:

    - `gelu`: h Φ(h), with the normal distribution's Φ (Hendrycks & Gimpel 2016), not the
      approximation by tanh;
    - `swiglu`: h σ(h) · (x V + c), a gated unit (Shazeer 2020). F remains the size of the hidden
      layer, so there are three matrices of D·F numbers instead of two: 2/3 of F keeps the size.

    Args:
        d_ff: size of the hidden layer, F.
        dropout_rate: dropout on the hidden layer (an option; the paper has none).
        activation: `relu`, `gelu` or `swiglu`.

    Call arguments:
        x: float tensor (B, T, D).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).
    """

    # Differs from Shazeer 2020: a gated unit has biases too, as equation 2 has.

    def __init__(
        self, d_ff: int, dropout_rate: float = 0.0, activation: Activation = "relu", **kwargs
    ):
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.dropout_rate = dropout_rate
        self.activation = activation
        self.is_gated = activation == "swiglu"  # W₁ and V are then one variable
        fill = [keras.initializers.GlorotUniform() for _ in range(2)] if self.is_gated else []
        self.hidden = keras.layers.Dense(
            2 * d_ff if self.is_gated else d_ff,
            activation=None if self.is_gated else activation,
            kernel_initializer=(
                ConcatenatedInitializer((d_ff, d_ff), fill) if fill else "glorot_uniform"
            ),
            dtype=self.dtype_policy,
            name="hidden",
        )
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.hidden.build(input_shape)
        self.output_projection = keras.layers.Dense(
            input_shape[-1], dtype=self.dtype_policy, name="output"
        )
        self.output_projection.build((*input_shape[:-1], self.d_ff))

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.hidden(flatten_positions(x))  # (B·T, F), twice F with a gate
        if self.is_gated:
            hidden, factor = ops.split(hidden, 2, axis=-1)
            hidden = silu(hidden) * factor
        hidden = self.dropout(hidden, training=training)
        return unflatten_positions(self.output_projection(hidden), like=x)  # (B, T, D)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        options = {"d_ff": self.d_ff, "dropout_rate": self.dropout_rate}
        return super().get_config() | options | {"activation": self.activation}
