"""The interface of a position encoding, and the positions of one call of self-attention."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.shape import Shape


class PositionEncoding(keras.layers.Layer):
    """Lets attention distinguish positions. The base class encodes nothing.

    An encoding overrides one or more of three hooks. Models, stacks and cached decoding call all
    three, so a new encoding needs nothing else but a name in `position.ENCODINGS`.

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
    def has_bias(self) -> bool:
        """Whether `bias` is overridden."""
        return type(self).bias is not PositionEncoding.bias

    def on_scores(self) -> "PositionEncoding | None":
        """This encoding if `rotate` or `bias` is overridden; if not, layers need not call them."""
        acts = self.has_bias or type(self).rotate is not PositionEncoding.rotate
        return self if acts else None

    @staticmethod
    def restored(encoding: "PositionEncoding | dict | None") -> "PositionEncoding | None":
        """An encoding as it is, or from what `keras.saving.serialize_keras_object` made of it."""
        if isinstance(encoding, dict):
            return keras.saving.deserialize_keras_object(encoding)
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
