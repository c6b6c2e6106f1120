"""Positional encodings: sinusoids (paper section 3.5) or a learned table (Table 3, row E)."""

import math

import keras
from keras import KerasTensor, ops


def sinusoids(positions: KerasTensor, d_model: int) -> KerasTensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same.

    Args:
        positions: int tensor (T,); any non-negative value, there is no table to run out of.
        d_model: size of an encoding, D.

    Returns:
        float32 tensor (T, D), sines at even and cosines at odd indices.

    Raises:
        ValueError: when `d_model` is odd.

    Example:
        >>> [round(float(x), 3) for x in sinusoids(np.array([1]), 4)[0]]
        [0.841, 0.54, 0.01, 1.0]
    """
    if d_model % 2:
        raise ValueError(f"sinusoids pair sines with cosines: d_model must be even, got {d_model}.")
    rates = ops.exp(ops.arange(0, d_model, 2, dtype="float32") * (-math.log(10_000.0) / d_model))
    angles = ops.cast(positions, "float32")[:, None] * rates[None, :]  # (T, D/2)
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # (T, D/2, 2)
    return ops.reshape(pairs, (-1, d_model))  # (T, D)


@keras.saving.register_keras_serializable(package="tf_transformer")
class SinusoidalPosition(keras.layers.Layer):
    """Adds sinusoidal encodings to a sequence (paper section 3.5).

    Computed for the positions asked for, so a model trained on 50 positions works at 5,000.

    Call arguments:
        x: float tensor (B, T, D).
        start: int, or int scalar tensor: the position of x's first element.

    Returns:
        float tensor (B, T, D).
    """

    def call(self, x: KerasTensor, start: int | KerasTensor = 0) -> KerasTensor:
        positions = start + ops.arange(ops.shape(x)[1])  # (T,)
        return x + ops.cast(sinusoids(positions, x.shape[-1]), x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class LearnedPosition(keras.layers.Layer):
    """Adds a learned vector for each position (paper Table 3, row E).

    Args:
        max_length: number of positions in the table.

    Call arguments:
        x: float tensor (B, T, D).
        start: int, or int scalar tensor: the position of x's first element.

    Returns:
        float tensor (B, T, D).

    Raises:
        ValueError: when the sequence is known to reach past the table.
    """

    def __init__(self, max_length: int, **kwargs):
        super().__init__(**kwargs)
        self.max_length = max_length

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.max_length, input_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=input_shape[-1] ** -0.5),
        )

    def call(self, x: KerasTensor, start: int | KerasTensor = 0) -> KerasTensor:
        length = x.shape[1]
        if length is not None and isinstance(start, int) and start + length > self.max_length:
            raise ValueError(
                f"the learned position table has {self.max_length} positions, but the sequence "
                f"reaches position {start + length}. Shorten the text, train with a larger "
                "model.max_length, or use model.position=sinusoidal, which has no limit."
            )
        positions = start + ops.arange(ops.shape(x)[1])  # (T,)
        return x + ops.cast(ops.take(self.table, positions, axis=0), x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"max_length": self.max_length}
