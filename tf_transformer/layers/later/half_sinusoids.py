"""Sinusoids whose first half are sines and whose second half are cosines, for imported models.

`PositionEncoding` describes the calls.
"""

import math

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.position_encoding import PositionEncoding


def half_sinusoids(positions: KerasTensor, d_model: int, steps: int) -> KerasTensor:
    """PE(pos, i) = sin(pos / 10000^(i/steps)), PE(pos, i + D/2) = cos(pos / 10000^(i/steps)).

    Positions (T,) give float32 (T, D). With D/2 steps, the rates are the paper's, and only the
    order of the columns differs.
    """
    rates = ops.exp(ops.arange(d_model // 2, dtype="float32") * (-math.log(10_000.0) / steps))
    angles = ops.cast(positions, "float32")[:, None] * rates[None, :]  # (T, D/2)
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


@keras.saving.register_keras_serializable(package="tf_transformer")
class HalfSinusoids(PositionEncoding):
    """Sines, then cosines, of the paper's rates: what Transformers and CTranslate2 compute."""

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        return half_sinusoids(positions, d_model, steps=d_model // 2)


@keras.saving.register_keras_serializable(package="tf_transformer")
class MarianPosition(PositionEncoding):
    """Sines, then cosines, of the rates that Marian computes: the last one is 1/10000."""

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        return half_sinusoids(positions, d_model, steps=max(d_model // 2 - 1, 1))


@keras.saving.register_keras_serializable(package="tf_transformer")
class OpenNMTPosition(MarianPosition):
    """Marian's rates, with 1 as the first position: what OpenNMT-tf and CTranslate2 compute."""

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        return super().encodings(positions + 1, d_model)


@keras.saving.register_keras_serializable(package="tf_transformer")
class FairseqPosition(MarianPosition):
    """Marian's rates, with 2 as the first position, as in fairseq's models.

    fairseq counts positions from the one after its id of padding, 1.
    """

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        return super().encodings(positions + 2, d_model)
