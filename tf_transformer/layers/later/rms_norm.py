"""RMSNorm (Zhang & Sennrich 2019)."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class RMSNorm(keras.layers.Layer):
    """RMSNorm(x) = x / √(mean(x²) + ε) · γ over the last axis (Zhang & Sennrich 2019).

    Layer normalization without the mean and without β. It always computes in float32.

    Args:
        epsilon: ε.

    Call arguments:
        x: float tensor (..., D).

    Returns:
        float tensor (..., D).

    Example:
        >>> ops.convert_to_numpy(RMSNorm()(np.array([[2.0, -2.0]], "float32"))).round(3).tolist()
        [[1.0, -1.0]]
    """

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        self.gamma = self.add_weight(name="gamma", shape=(input_shape[-1],), initializer="ones")

    def call(self, x: KerasTensor) -> KerasTensor:
        x, gamma = (ops.cast(y, "float32") for y in (x, self.gamma))
        return ops.cast(kernels.current().rms_norm(x, gamma, self.epsilon), self.compute_dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"epsilon": self.epsilon}
