"""The residual connection around each sub-layer (paper sections 3.1 and 5.4)."""

import keras
from keras import KerasTensor

from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.normalization import NORMALIZATIONS, Normalization


@keras.saving.register_keras_serializable(package="tf_transformer")
class Residual(keras.layers.Layer):
    """LayerNorm(x + Dropout(Sublayer(x))), or with pre-norm x + Dropout(Sublayer(LayerNorm(x))).

    The first is the paper's (sections 3.1 and 5.4). The second trains more easily when deep, and
    needs one more norm after the last layer of a stack. Used in two steps:

        output = sublayer(residual.before(x))
        x = residual(x, output)

    Args:
        dropout_rate: dropout on the sub-layer's output.
        norm_first: pre-norm instead of the paper's post-norm.
        normalization: `layer_norm` (the paper), or `rms_norm` in its place.

    Call arguments:
        x: float tensor (B, T, D).
        output: float tensor (B, T, D), the sub-layer's.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).
    """

    def __init__(
        self,
        dropout_rate: float = 0.0,
        norm_first: bool = False,
        normalization: Normalization = "layer_norm",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dropout_rate = dropout_rate
        self.norm_first = norm_first
        self.normalization = normalization
        self.norm = NORMALIZATIONS[normalization](dtype=self.dtype_policy)
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)

    def build(self, x_shape, output_shape=None):
        self.norm.build(x_shape)

    def before(self, x: KerasTensor) -> KerasTensor:
        """The input of the sub-layer, (B, T, D)."""
        return self.norm(x) if self.norm_first else x

    def call(
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        x = x + self.dropout(output, training=training)
        # Differs from the paper: pre-norm is an option, off by default.
        return x if self.norm_first else self.norm(x)

    def compute_output_shape(self, x_shape, output_shape=None):
        return x_shape

    def get_config(self):
        return super().get_config() | {
            "dropout_rate": self.dropout_rate,
            "norm_first": self.norm_first,
            "normalization": self.normalization,
        }
