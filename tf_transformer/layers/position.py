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


class Position(keras.layers.Layer):
    """Adds to a sequence what tells its positions apart; `encodings` says what that is.

    Call arguments:
        x: float tensor (B, T, D).

    Returns:
        float tensor (B, T, D).
    """

    def encodings(self, length: int | KerasTensor, d_model: int) -> KerasTensor:
        """The encodings (T, D) of positions 0 to T - 1."""
        raise NotImplementedError

    def call(self, x: KerasTensor) -> KerasTensor:
        length = x.shape[1] if x.shape[1] is not None else ops.shape(x)[1]
        return x + ops.cast(self.encodings(length, x.shape[-1]), x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):  # by itself Keras does not save a layer whose dtype is a policy object
        return super().get_config()


@keras.saving.register_keras_serializable(package="tf_transformer")
class SinusoidalPosition(Position):
    """Adds sinusoidal encodings to a sequence (paper section 3.5).

    Computed for the positions asked for, so a model trained on 50 positions works at 5,000.

    Call arguments:
        x: float tensor (B, T, D).

    Returns:
        float tensor (B, T, D).
    """

    def encodings(self, length: int | KerasTensor, d_model: int) -> KerasTensor:
        return sinusoids(ops.arange(length), d_model)


@keras.saving.register_keras_serializable(package="tf_transformer")
class LearnedPosition(Position):
    """Adds a learned vector for each position (paper Table 3, row E).

    Args:
        max_length: number of positions in the table.

    Call arguments:
        x: float tensor (B, T, D).

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

    def encodings(self, length: int | KerasTensor, d_model: int) -> KerasTensor:
        if isinstance(length, int) and length > self.max_length:
            raise ValueError(
                f"the learned position table has {self.max_length} positions, but the sequence "
                f"has {length}. Shorten the text, train with a larger model.max_length, or use "
                "model.position=sinusoidal, which has no limit."
            )
        return self.table[:length]

    def get_config(self):
        return super().get_config() | {"max_length": self.max_length}
