"""An output projection with a bias, as Marian's models have it."""

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.shape import Shape


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
