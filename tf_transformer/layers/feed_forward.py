"""Position-wise feed-forward network (paper section 3.3)."""

from typing import Any, ClassVar

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import silu
from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions
from tf_transformer.layers.initializers import ConcatenatedInitializer


@keras.saving.register_keras_serializable(package="tf_transformer")
class FeedForward(ConfiguredLayer):
    """FFN(x) = max(0, x W₁ + b₁) W₂ + b₂ at every position (paper equation 2).

    Options in place of max(0, h), the paper's `relu`:

    - `gelu`: h Φ(h), with the normal distribution's Φ (Hendrycks & Gimpel 2016), not the
      approximation by tanh;
    - `swiglu`: h σ(h) · (x V + c), a gated unit (Shazeer 2020). F remains the size of the hidden
      layer, so there are three matrices of D·F numbers instead of two: 2/3 of F keeps the size.

    Args:
        config: the configuration of the stack, or its fields by name. The layer reads `d_ff`, F,
            `activation`, and `feed_forward_dropout_rate` on the hidden layer, which the paper has
            not; its short name is `dropout_rate`.
        **options: see `ConfiguredLayer`.

    Call arguments:
        x: float tensor (B, T, D).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).
    """

    # Differs from Shazeer 2020: a gated unit has biases too, as equation 2 has.

    short_names: ClassVar = {"dropout_rate": "feed_forward_dropout_rate"}

    def __init__(self, config: Config = None, **options: Any):
        super().__init__(config, **options)
        d_ff, activation = self.config.d_ff, self.config.activation
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
        self.dropout = Dropout(self.config.feed_forward_dropout_rate, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.hidden.build(input_shape)
        self.output_projection = keras.layers.Dense(
            input_shape[-1], dtype=self.dtype_policy, name="output"
        )
        self.output_projection.build((*input_shape[:-1], self.config.d_ff))

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.hidden(flatten_positions(x))  # (B·T, F), twice F with a gate
        if self.is_gated:
            hidden, factor = ops.split(hidden, 2, axis=-1)
            hidden = silu(hidden) * factor
        hidden = self.dropout(hidden, training=training)
        return unflatten_positions(self.output_projection(hidden), like=x)  # (B, T, D)

    def compute_output_shape(self, input_shape):
        return input_shape
