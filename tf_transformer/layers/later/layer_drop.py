"""LayerDrop: training skips whole layers (Fan et al. 2020)."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class LayerDrop(keras.layers.Layer):
    """Returns the output of a layer. In training, returns its input with probability `rate`.

    From Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout". Each call
    draws once for all its examples. A skipped layer is still computed, but gets no gradient.

    Args:
        rate: probability that the layer is skipped.
        seed: seed of the random numbers; None: drawn from Keras' global seed.

    Call arguments:
        x: float tensor (B, T, D), the layer's input.
        output: float tensor (B, T, D), the layer's output.
        training: whether layers may be skipped; if not, `output` is returned.

    Returns:
        float tensor (B, T, D).

    Example:
        >>> LayerDrop(0.1)(np.zeros((1, 2, 3)), np.ones((1, 2, 3)), training=False).shape
        TensorShape([1, 2, 3])
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if rate else None
        self.built = True

    def call(
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        if not training or not self.rate:
            return output
        is_skipped = keras.random.uniform((), seed=self.seed_generator) < self.rate
        return ops.where(is_skipped, x, output)

    def compute_output_shape(self, x_shape: Shape, output_shape: Shape | None = None) -> Shape:
        return x_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
