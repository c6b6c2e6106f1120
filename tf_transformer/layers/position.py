"""Sinusoidal position encodings, which are added to embeddings (paper section 3.5)."""

import math

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.position_encoding import PositionEncoding


def sinusoids(positions: KerasTensor, d_model: int) -> KerasTensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).

    Args:
        positions: int tensor (T,) with values from 0 on. There is no largest position.
        d_model: size of an encoding, D.

    Returns:
        float32 tensor (T, D), sines at even and cosines at odd indices.

    Raises:
        ValueError: if `d_model` is odd.

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
class SinusoidalPosition(PositionEncoding):
    """Adds sinusoidal encodings to a sequence (paper section 3.5).

    The encodings are computed from the positions, so a model trained on 50 positions works with
    5,000. `PositionEncoding` describes the call.
    """

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        return sinusoids(positions, d_model)
