"""The interface of a position encoding, and the positions of one call of self-attention."""

from dataclasses import dataclass
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.shape import Shape


class PositionEncoding(keras.layers.Layer):
    """Lets attention distinguish positions. The base class encodes nothing.

    A subclass overrides one or more of the hooks `encodings`, `rotate` and `bias`. Models, stacks
    and cached decoding call all three. `encodings.ENCODINGS` gives a new encoding its name.

    Call arguments:
        x: float tensor (B, T, D), embeddings of the positions 0 to T - 1.

    Returns:
        float tensor (B, T, D): x plus `encodings`.
    """

    max_length: int | None = None  # number of positions that can be encoded; None: no limit

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor | None:
        """The vectors (T, D) that are added to embeddings at positions (T,); None: nothing."""
        return None

    def rotate(self, heads: KerasTensor, positions: KerasTensor) -> KerasTensor:
        """Rotates queries or keys (B, H, T, K) of self-attention at positions (T,)."""
        return heads

    def bias(
        self, query: KerasTensor, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor | None:
        """The numbers that are added to the scores of self-attention.

        Args:
            query: float tensor (B, H, T, K), rotated.
            query_positions: int tensor (T,).
            key_positions: int tensor (1 or B, S). The sentences of a cache may have different rows.

        Returns:
            float tensor (1 or B, 1 or H, T, S); None: nothing is added.
        """
        return None

    @property
    def has_bias(self) -> bool:
        """Whether this class overrides `bias`."""
        return type(self).bias is not PositionEncoding.bias

    def on_scores(self) -> "PositionEncoding | None":
        """Returns this encoding if it overrides `rotate` or `bias`, else None.

        Layers call these hooks only for an encoding that overrides them.
        """
        acts = self.has_bias or type(self).rotate is not PositionEncoding.rotate
        return self if acts else None

    @staticmethod
    def restored(encoding: "PositionEncoding | dict | None") -> "PositionEncoding | None":
        """Restores an encoding from its serialized form, a dict; returns an encoding as it is."""
        if isinstance(encoding, dict):
            return keras.saving.deserialize_keras_object(encoding)
        if encoding is not None and not isinstance(encoding, PositionEncoding):
            raise ValueError(
                "expected position as a layer that encodes positions, such as RotaryPosition(), "
                f"got {encoding!r}."
            )
        return encoding

    def call(self, x: KerasTensor) -> KerasTensor:
        length = x.shape[1] if x.shape[1] is not None else ops.shape(x)[1]
        encodings = self.encodings(ops.arange(length), x.shape[-1])
        return x if encodings is None else x + ops.cast(encodings, x.dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    # Keras does not save a layer with a policy object without this.
    def get_config(self) -> dict[str, Any]:
        return super().get_config()


@dataclass(frozen=True)  # no nest: Keras takes no nest of a layer and tensors
class Positions:
    """The positions of queries and keys in one call of self-attention, with their encoding."""

    encoding: PositionEncoding  # has `rotate` and `bias`
    queries: KerasTensor  # int (T,): positions of the queries and of the new keys
    keys: KerasTensor  # int (1 or B, S): positions of all keys

    @classmethod
    def of(
        cls,
        encoding: PositionEncoding | None,
        x: KerasTensor,
        queries: KerasTensor | None = None,
        keys: KerasTensor | None = None,
    ) -> "Positions | None":
        """The positions of x (B, T, D), if an encoding acts on scores; by default 0 to T - 1."""
        if encoding is None:
            return None
        queries = ops.arange(ops.shape(x)[1]) if queries is None else queries
        return cls(encoding, queries, queries[None] if keys is None else keys)

    def rotate(self, heads: KerasTensor) -> KerasTensor:
        """Rotates queries or new keys (B, H, T, K)."""
        return self.encoding.rotate(heads, self.queries)

    def bias(self, query: KerasTensor) -> KerasTensor | None:
        """Returns the numbers to add to the scores of rotated queries (B, H, T, K)."""
        return self.encoding.bias(query, self.queries, self.keys)
