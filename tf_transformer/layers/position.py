"""Position encodings: sinusoids (paper section 3.5) or a learned table (Table 3, row E)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import keras
from keras import KerasTensor, ops


def sinusoids(positions: KerasTensor, d_model: int) -> KerasTensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same.

    Args:
        positions: int tensor (T,); any values that are not negative: there is no table that ends.
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


class PositionEncoding(keras.layers.Layer):
    """Lets attention distinguish positions. The base class encodes nothing.

    An encoding overrides one or more of three hooks. Models, stacks and cached decoding call all
    three, so a new encoding needs nothing else but a name in `ENCODINGS`.

    Call arguments:
        x: float tensor (B, T, D), embeddings of positions 0 to T - 1.

    Returns:
        float tensor (B, T, D): x plus `encodings`.

    Attributes:
        max_length: number of positions that can be encoded; None: any number.
    """

    max_length: int | None = None

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor | None:
        """Vectors (T, D) to add to the embeddings at int `positions` (T,); None adds nothing."""
        return None

    def rotate(self, heads: KerasTensor, positions: KerasTensor) -> KerasTensor:
        """Queries or keys (B, H, T, K) of self-attention as they enter the scores.

        Args:
            heads: float tensor (B, H, T, K).
            positions: int tensor (T,).
        """
        return heads

    def bias(
        self, query: KerasTensor, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor | None:
        """Numbers to add to the scores of self-attention, (1 or B, 1 or H, T, S); None: zeros.

        Args:
            query: float tensor (B, H, T, K), rotated.
            query_positions: int tensor (T,).
            key_positions: int tensor (1 or B, S). In a cache, sentences may have different rows.
        """
        return None

    @property
    def acts_on_scores(self) -> bool:
        """Whether `rotate` or `bias` is overridden; if not, layers need not call them."""
        own, base = type(self), PositionEncoding
        return own.rotate is not base.rotate or own.bias is not base.bias

    def call(self, x: KerasTensor) -> KerasTensor:
        length = x.shape[1] if x.shape[1] is not None else ops.shape(x)[1]
        encodings = self.encodings(ops.arange(length), x.shape[-1])
        return x if encodings is None else x + ops.cast(encodings, x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):  # Keras does not save a layer with a policy object without this
        return super().get_config()


@keras.saving.register_keras_serializable(package="tf_transformer")
class SinusoidalPosition(PositionEncoding):
    """Adds sinusoidal encodings to a sequence (paper section 3.5).

    They are computed for each position, so a model trained on 50 positions works at 5,000.

    Call arguments:
        x: float tensor (B, T, D).

    Returns:
        float tensor (B, T, D).
    """

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        return sinusoids(positions, d_model)


@keras.saving.register_keras_serializable(package="tf_transformer")
class LearnedPosition(PositionEncoding):
    """Adds a learned vector for each position (paper Table 3, row E).

    Args:
        max_length: number of positions in the table.

    Call arguments:
        x: float tensor (B, T, D).

    Returns:
        float tensor (B, T, D).

    Raises:
        ValueError: when the sequence is known to be longer than the table.
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

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        length = positions.shape[0]
        if length is not None and length > self.max_length:
            raise ValueError(
                f"the learned position table has {self.max_length} positions, but the sequence "
                f"has {length}. Shorten the text, train with a larger model.max_length, or use "
                "model.position=sinusoidal, which has no limit."
            )
        return ops.take(self.table, positions, axis=0)

    def get_config(self):
        return super().get_config() | {"max_length": self.max_length}


# The values of `model.position`: from max_length and Keras' layer arguments to an encoding.
ENCODINGS: dict[str, Callable[..., PositionEncoding]] = {
    "sinusoidal": lambda max_length, **options: SinusoidalPosition(**options),
    "learned": LearnedPosition,
}


class Positions(NamedTuple):
    """The positions of queries and keys in one call of self-attention, with their encoding."""

    encoding: PositionEncoding  # `rotate` and `bias` apply
    queries: KerasTensor  # int (T,): positions of the queries and of the new keys
    keys: KerasTensor  # int (1 or B, S): positions of all keys

    def rotate(self, heads: KerasTensor) -> KerasTensor:
        """Queries or new keys (B, H, T, K), rotated."""
        return self.encoding.rotate(heads, self.queries)

    def bias(self, query: KerasTensor) -> KerasTensor | None:
        """The numbers to add to the scores of rotated queries (B, H, T, K)."""
        return self.encoding.bias(query, self.queries, self.keys)
