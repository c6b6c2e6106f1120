"""The residual connection around each sub-layer (paper sections 3.1 and 5.4)."""

from typing import Any, ClassVar

import keras
from keras import KerasTensor

from tf_transformer.layers.configured import Config, ConfiguredLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.variants import make_norm


@keras.saving.register_keras_serializable(package="tf_transformer")
class Residual(ConfiguredLayer):
    """LayerNorm(x + Dropout(Sublayer(x))), or with pre-norm x + Dropout(Sublayer(LayerNorm(x))).

    The first form is the paper's (sections 3.1 and 5.4). Pre-norm makes deep models easier to
    train, and needs one more normalization after the last layer of a stack. Use it in two steps:

        output = sublayer(residual.before(x))
        x = residual(x, output)

    Args:
        config: the configuration of the stack, or its fields as a dict. The layer reads
            `dropout_rate`, `norm_first`, `normalization` and `norm_epsilon`.
        **options: see `ConfiguredLayer`.

    Call arguments:
        x: float tensor (B, T, D).
        output: float tensor (B, T, D), the output of the sub-layer.
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).

    Example:
        >>> residual, x = Residual(), np.ones((3, 5, 8), "float32")
        >>> residual(x, 2 * x).shape
        TensorShape([3, 5, 8])
    """

    reads: ClassVar = frozenset({"dropout_rate", "norm_first", "normalization", "norm_epsilon"})

    def __init__(self, config: Config = None, **options: Any):
        super().__init__(config, **options)
        self.norm = make_norm(self.config, dtype=self.dtype_policy, name="norm")
        self.dropout = Dropout(self.config.dropout_rate, dtype=self.dtype_policy)

    def build(self, x_shape: Shape, output_shape: Shape | None = None) -> None:
        self.norm.build(x_shape)

    def before(self, x: KerasTensor) -> KerasTensor:
        """Returns the input of the sub-layer, (B, T, D)."""
        return self.norm(x) if self.config.norm_first else x

    def call(
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        x = x + self.dropout(output, training=training)
        # Differs from the paper: pre-norm is an option, off by default.
        return x if self.config.norm_first else self.norm(x)
