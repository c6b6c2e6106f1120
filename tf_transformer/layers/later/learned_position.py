"""A learned vector for each position (paper Table 3, row E)."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.position_encoding import PositionEncoding
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class LearnedPosition(PositionEncoding):
    """Adds a learned vector for each position (paper Table 3, row E).

    Args:
        max_length: number of positions in the table. A longer sequence raises a `ValueError`. A
            graph with an unknown length does not check this.

    Example:
        >>> LearnedPosition(max_length=6)(np.zeros((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    def __init__(self, max_length: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_length = max_length

    def build(self, input_shape: Shape) -> None:
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

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"max_length": self.max_length}
