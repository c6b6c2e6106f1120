"""Layer normalisation (Ba et al. 2016), as the paper uses it around every sub-layer."""

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import with_gradient
from tf_transformer.layers.rows import to_rows


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
        x, gamma, beta = (ops.cast(y, "float32") for y in (x, self.gamma, self.beta))
        return ops.cast(normalize(x, gamma, beta, self.epsilon), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"epsilon": self.epsilon}


def normalize(x: KerasTensor, gamma: KerasTensor, beta: KerasTensor, epsilon: float) -> KerasTensor:
    """(x - mean) / √(variance + ε) · γ + β, with a gradient of its own.

    The derived gradient goes back through mean and variance one operation after the other, each
    a pass over all of x.

    Args:
        x: float tensor (..., D).
        gamma: float tensor (D,).
        beta: float tensor (D,).
        epsilon: ε.

    Returns:
        float tensor (..., D).
    """

    @with_gradient
    def normalized(x, gamma, beta):
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        scale = ops.rsqrt(variance + epsilon)  # (..., 1)
        unit = centred * scale  # mean 0, variance 1

        def gradient(upstream):
            by_unit = upstream * gamma
            # What would move the mean or stretch the whole changes nothing: it is taken out.
            moved = ops.mean(by_unit, axis=-1, keepdims=True)
            stretched = ops.mean(by_unit * unit, axis=-1, keepdims=True)
            by_x = (by_unit - moved - unit * stretched) * scale
            return by_x, _sum_of_rows(upstream * unit), _sum_of_rows(upstream)

        return unit * gamma + beta, gradient

    return normalized(x, gamma, beta)


def _sum_of_rows(x: KerasTensor) -> KerasTensor:
    return ops.sum(to_rows(x), axis=0)  # (D,)
