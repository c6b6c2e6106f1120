"""Self-attention over whole sequences, and over new positions that follow earlier ones."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.attention import MultiHeadAttention
from tf_transformer.layers.configured import Config
from tf_transformer.layers.masks import causal_mask, combine_masks, require_mask
from tf_transformer.layers.outputs import Attended
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.stored import KeyValue, Stored


@keras.saving.register_keras_serializable(package="tf_transformer")
class SelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence to itself (paper section 3.2.3).

    It supports position encodings that act on scores. This class attends to every position that
    the mask shows, as in the paper. Subclasses attend to fewer positions or in another way, and
    need no mask of size T · T.

    Args:
        config: see `MultiHeadAttention`.
        is_causal: whether later positions are hidden.
        **options: see `ConfiguredLayer`.

    Raises:
        ValueError: for a `value`, because there is no other sequence.

    Attributes:
        window: number of latest positions that a cache keeps, with the query's own; None: all.

    Example:
        >>> layer = SelfAttention(num_heads=2, key_dim=4, is_causal=True)
        >>> layer(np.ones((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    window: int | None = None

    def __init__(self, config: Config = None, is_causal: bool = False, **options: Any):
        super().__init__(config, **options)
        self.is_causal = is_causal

    def build(self, query_shape: Shape, value_shape: Shape | None = None) -> None:
        self._require_none(value_shape)
        super().build(query_shape)

    def run(
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Like a call, but also returns the attention weights and the keys and values."""
        self._require_none(value)
        require_mask("attention_mask", attention_mask, query, query, self.config.num_heads)
        mask = combine_masks(self.sequence_mask(ops.shape(query)[1]), attention_mask)
        return self.self_attend(query, mask, training=training)

    def _require_none(self, value: Any) -> None:
        if value is not None:
            raise ValueError(
                f"{type(self).__name__} attends from a sequence to itself, but got a second tensor "
                "as value. Use MultiHeadAttention to attend to another sequence, and give a mask "
                "by name: attention_mask=mask."
            )

    def self_attend(
        self,
        x: KerasTensor,
        mask: KerasTensor | None = None,
        positions: Positions | None = None,
        earlier: Stored | None = None,
        training: bool | None = None,
    ) -> Attended:
        """Attends from x to x, and to earlier positions if there are any.

        Args:
            x: float tensor (B, T, D).
            mask: bool tensor that broadcasts to (B, H, T, S). S also counts earlier positions.
            positions: positions of queries and keys, if the encoding acts on scores.
            earlier: keys and values of earlier positions.
            training: whether dropout is on.

        Returns:
            `Attended`: the output (B, T, D), the attention weights, and keys and values.
        """
        query, new = self.project(x)
        bias = None
        if positions is not None:
            query, new = positions.rotate(query), new._replace(key=positions.rotate(new.key))
            bias = positions.bias(query)
        stored = new if earlier is None else earlier.with_new(new)
        return self.attend(query, stored, mask, bias, training)

    def sequence_mask(self, length: int | KerasTensor) -> KerasTensor | None:
        """The mask that `self_attend` needs for T positions, without padding; None: no mask."""
        return causal_mask(length) if self.is_causal else None

    def visible(
        self, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor | None:
        """Returns which earlier positions a query attends to.

        Args:
            query_positions: int tensor (T,).
            key_positions: int tensor (1 or B, S).

        Returns:
            bool tensor (1 or B, 1, T, S); None: all positions.
        """
        return None

    def by_position(self, weights: KerasTensor) -> KerasTensor:
        """Converts the attention weights of whole sequences to (B, H, T, T)."""
        return weights

    def nothing(self, batch: int | KerasTensor) -> Stored:
        """Returns keys and values of zero positions for B sequences."""
        config = self.config
        return KeyValue(
            *(
                ops.zeros((batch, config.num_key_value_heads, 0, size), self.compute_dtype)
                for size in (config.key_dim, config.value_dim)
            )
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"is_causal": self.is_causal}
