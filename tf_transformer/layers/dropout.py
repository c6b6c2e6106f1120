"""Dropout (paper section 5.4; Srivastava et al. 2014)."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import KerasTensor

from tf_transformer import kernels
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class Dropout(keras.layers.Layer):
    """x · kept / (1 - rate), where `kept` is 0 with probability `rate` and otherwise 1.

    Args:
        rate: probability that an element becomes 0; rates above 255/256 become 255/256.
        seed: seed of the random numbers; None: drawn from Keras' global seed.

    Call arguments:
        x: float tensor of any shape, like the result.
        training: whether dropout is on; if not, x is returned.

    Example:
        >>> bool(np.asarray(Dropout(0.5)(np.ones((2, 3), "float32"), training=True)).max() <= 2.0)
        True
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if rate else None
        self.built = True

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        if not training or not self.rate:
            return x
        return kernels.current().dropout(x, self.rate, self.seed_generator)

    def function(self, training: bool | None) -> Callable[[KerasTensor], KerasTensor] | None:
        """Dropout as a function of a tensor; None if it is off."""
        return functools.partial(self.__call__, training=True) if training and self.rate else None

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
