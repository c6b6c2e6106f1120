"""RMSNorm (Zhang & Sennrich 2019)."""

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.layers.normalization import LayerNorm
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class RMSNorm(LayerNorm):
    """RMSNorm(x) = x / √(mean(x²) + ε) · γ over the last axis (Zhang & Sennrich 2019).

    Layer normalization without the mean and without β. `LayerNorm` describes the arguments and the
    call.

    Example:
        >>> ops.convert_to_numpy(RMSNorm()(np.array([[2.0, -2.0]], "float32"))).round(3).tolist()
        [[1.0, -1.0]]
    """

    def build(self, input_shape: Shape) -> None:
        self.gamma = self.add_weight(name="gamma", shape=(input_shape[-1],), initializer="ones")

    def call(self, x: KerasTensor) -> KerasTensor:
        x, gamma = (ops.cast(y, "float32") for y in (x, self.gamma))
        return ops.cast(kernels.current().rms_norm(x, gamma, self.epsilon), self.compute_dtype)
