"""Dropout (paper section 5.4; Srivastava et al. 2014)."""

import keras
from keras import KerasTensor, ops

STEPS = 2048  # 2¹¹


@keras.saving.register_keras_serializable(package="tf_transformer")
class Dropout(keras.layers.Layer):
    """x · floor(u + 1 - rate) / (1 - rate), u uniform in [0, 1).

    That floor is 1 with probability 1 - rate, else 0. It takes three cheap operations forward and
    one backward, where `keras.layers.Dropout` compares and selects, forward and backward. And two
    u come from each random number, which is what takes most of the time: of the 23 bits that a
    float has, the first 11 decide one element, the other 12 another. So the rate is the
    nearest multiple of 1/2048.

    Args:
        rate: share of the elements that become 0.
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
        # Exact in float32, which the numbers are whatever x is: what is kept and what it is divided
        # by are the same.
        kept = 1.0 - min(max(round(self.rate * STEPS), 1), STEPS - 1) / STEPS
        mask = ops.floor(self._uniform(x) + kept) * (1.0 / kept)
        return x * ops.cast(mask, x.dtype)

    def _uniform(self, like: KerasTensor) -> KerasTensor:
        """Numbers in [0, 1), float32, in the shape of `like`, independent to 11 bits."""
        *leading, size = ops.shape(like)
        half = (*leading, (size + 1) // 2)
        drawn = keras.random.uniform(half, dtype="float32", seed=self.seed_generator)
        steps = drawn * STEPS
        both = ops.concatenate([drawn, steps - ops.floor(steps)], axis=-1)
        return both if like.shape[-1] == both.shape[-1] else both[..., :size]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
