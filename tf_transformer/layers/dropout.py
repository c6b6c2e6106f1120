"""Dropout (paper section 5.4; Srivastava et al. 2014)."""

import keras
from keras import KerasTensor

from tf_transformer import kernels


@keras.saving.register_keras_serializable(package="tf_transformer")
class Dropout(keras.layers.Layer):
    """x · kept / (1 - rate), where `kept` is 0 with probability `rate` and otherwise 1.

    Args:
        rate: probability that an element becomes 0; rates above 255/256 become 255/256.
        seed: seed of the random numbers; None: drawn from Keras' global seed.

    Call arguments:
        x: float tensor of any shape (...).
        training: whether dropout is on; if not, x is returned.

    Returns:
        float tensor (...).

    Example:
        >>> bool(np.asarray(Dropout(0.5)(np.ones((2, 3), "float32"), training=True)).max() <= 2.0)
        True
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if rate else None
        self.built = True

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        if not training or not self.rate:
            return x
        return kernels.current().dropout(x, self.rate, self.seed_generator)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
