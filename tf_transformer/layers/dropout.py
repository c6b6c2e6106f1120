"""Dropout (paper section 5.4; Srivastava et al. 2014)."""

import keras
import numpy as np
from keras import KerasTensor, ops

BYTES = 256  # so many different ones there are


@keras.saving.register_keras_serializable(package="tf_transformer")
class Dropout(keras.layers.Layer):
    """x · kept / (1 - rate), where `kept` is 0 with probability `rate`, else 1.

    Random numbers are what takes most of the time, so each of them decides four elements, with a
    byte each: what has a byte below the threshold is dropped. A rate lies between two multiples of
    1/256. Each call draws the one or the other, so that the rate is right for every element, and
    divides by what is right for the one it drew.

    Args:
        rate: share of the elements that become 0; above 255/256 it is that.
        seed: of the noise; drawn from Keras' global one when None.

    Call arguments:
        x: float tensor of any shape (...).
        training: whether elements are dropped at all.

    Returns:
        float tensor (...).

    Example:
        >>> np.asarray(Dropout(0.5)(np.ones((2, 3), "float32"), training=True)).max() <= 2.0
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
        size = ops.size(x)
        # With an axis of 1 the numbers' last axis is known, as `view` needs it. The last number is
        # one that decides no element.
        numbers = keras.random.randint(
            ((size + 3) // 4 + 1, 1), -(2**31), 2**31 - 1, seed=self.seed_generator
        )
        noise = ops.reshape(ops.view(numbers, "uint8"), (-1,))[:size]
        lower = min(int(self.rate * BYTES), BYTES - 2)
        share = min(self.rate * BYTES - lower, 1.0)
        higher = numbers[-1, 0] < int(share * (2**32 - 1)) - 2**31  # True with that probability
        threshold = ops.where(higher, np.uint8(lower + 1), np.uint8(lower))
        scale = ops.where(higher, BYTES / (BYTES - 1 - lower), BYTES / (BYTES - lower))
        kept = ops.reshape(noise >= threshold, ops.shape(x))
        return x * (ops.cast(kept, x.dtype) * ops.cast(scale, x.dtype))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
