"""An output projection with a bias, and a start of targets that is 0, as in Marian's models."""

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.shape import Shape
from tf_transformer.text.special_ids import BOS_ID


@keras.saving.register_keras_serializable(package="tf_transformer")
class BiasedEmbedding(TokenEmbedding):
    """A `TokenEmbedding` whose logits have a bias: x Eᵀ + b.

    `TokenEmbedding` describes the arguments and the call.

    Example:
        >>> layer = BiasedEmbedding(vocabulary_size=11, d_model=4)
        >>> layer.logits(layer(np.array([[1, 2, 3]]))).shape
        TensorShape([1, 3, 11])
    """

    def build(self, ids_shape: Shape | None = None) -> None:
        super().build(ids_shape)
        self.bias = self.add_weight(name="bias", shape=(self.vocabulary_size,), initializer="zeros")

    def logits(self, x: KerasTensor) -> KerasTensor:
        logits = super().logits(x)
        return logits if self.int8 is None else logits + self.bias

    def factors(self, x: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Rows (..., D + 1) and a matrix (V, D + 1). The last column of the rows is 1."""
        ones = ops.ones((*ops.shape(x)[:-1], 1), x.dtype)
        embeddings, bias = ops.cast(self.embeddings, x.dtype), ops.cast(self.bias, x.dtype)
        matrix = ops.concatenate([embeddings, bias[:, None]], axis=1)
        return ops.concatenate([x, ones], axis=-1), matrix


@keras.saving.register_keras_serializable(package="tf_transformer")
class ZeroStartEmbedding(BiasedEmbedding):
    """A `BiasedEmbedding` whose row for the start of a target is 0, in training too.

    Marian has no token for the start. The first input of its decoder is the position alone.
    `TokenEmbedding` describes the arguments and the call.

    Example:
        >>> layer = ZeroStartEmbedding(vocabulary_size=11, d_model=4)
        >>> float(ops.max(ops.abs(layer(np.array([1])))))
        0.0
    """

    def build(self, ids_shape: Shape | None = None) -> None:
        super().build(ids_shape)
        if self.int8 is None:
            self.embeddings.assign(self._without_start(self.embeddings))

    def call(self, ids: KerasTensor) -> KerasTensor:
        embedded = super().call(ids)
        return embedded * ops.cast(ids != BOS_ID, embedded.dtype)[..., None]

    def factors(self, x: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Rows (..., D + 1) and a matrix (V, D + 1). The row of the start has no gradient."""
        rows, matrix = super().factors(x)
        return rows, ops.concatenate([self._without_start(matrix[:, :-1]), matrix[:, -1:]], axis=1)

    def _without_start(self, matrix: KerasTensor) -> KerasTensor:
        """A matrix (V, D) with zeros in the row of the start."""
        is_token = ops.arange(self.vocabulary_size) != BOS_ID
        return matrix * ops.cast(is_token, matrix.dtype)[:, None]
