"""Layer normalisation (Ba et al. 2016), as the paper uses it around every sub-layer."""

import keras
from keras import KerasTensor, ops


@keras.saving.register_keras_serializable(package="tf_transformer")
class LayerNorm(keras.layers.Layer):
    """(x - mean) / √(variance + ε) · γ + β over the last axis.

    The same as `keras.layers.LayerNormalization` in half the operations, which is what counts
    when a search normalises one position at a time. Computed in float32 whatever the input.

    Args:
        epsilon: ε; the small one the field uses (Keras' own default is 1e-3).

    Call arguments:
        x: float tensor (..., D).

    Returns:
        float tensor (..., D).

    Example:
        >>> ops.convert_to_numpy(LayerNorm()(np.array([[1.0, 3.0]], "float32"))).round(3).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, epsilon: float = 1e-6, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        self.gamma = self.add_weight(name="gamma", shape=(input_shape[-1],), initializer="ones")
        self.beta = self.add_weight(name="beta", shape=(input_shape[-1],), initializer="zeros")

    def call(self, x: KerasTensor) -> KerasTensor:
        centred = ops.cast(x, "float32")
        centred = centred - ops.mean(centred, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        scale = ops.rsqrt(variance + self.epsilon) * ops.cast(self.gamma, "float32")
        return ops.cast(centred * scale + ops.cast(self.beta, "float32"), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"epsilon": self.epsilon}
