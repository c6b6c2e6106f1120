"""Token embeddings, and the output projection with the same matrix (paper section 3.4)."""

import math
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.errors import InputError
from tf_transformer.layers.int8 import Int8Matrix, Int8Policy
from tf_transformer.layers.shape import Shape, flatten_positions, unflatten_positions

AS_INTEGERS = "Convert them with astype('int32'), or give keras.Input the argument dtype='int32'."


@keras.saving.register_keras_serializable(package="tf_transformer")
class TokenEmbedding(keras.layers.Layer):
    """Embedding(ids) · √D; its transposed matrix is the output projection (paper section 3.4).

    The matrix is initialized from N(0, 1/D). So the scaled embeddings have variance 1 at first, and
    the logits of normalized states have a variance near 1.

    Args:
        vocabulary_size: number of token ids, V.
        d_model: size of an embedding, D.

    Call arguments:
        ids: int tensor of any shape (...) with values in [0, V).

    Returns:
        float tensor (..., D).

    Raises:
        InputError: if the ids are not integers.

    Example:
        >>> layer = TokenEmbedding(vocabulary_size=11, d_model=4)
        >>> layer.logits(layer(np.array([[1, 2, 3]]))).shape
        TensorShape([1, 3, 11])
    """

    int8: Int8Matrix | None = None  # the matrix, for inference with `Int8Policy`

    def __init__(self, vocabulary_size: int, d_model: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.d_model = d_model

    def build(self, ids_shape: Shape | None = None) -> None:
        shape, policy = (self.vocabulary_size, self.d_model), self.dtype_policy
        if isinstance(policy, Int8Policy) and policy.covers(*shape):
            self.int8 = Int8Matrix(shape, policy.product, name="embeddings")
            return
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=shape,
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )

    def call(self, ids: KerasTensor) -> KerasTensor:
        dtype = keras.backend.standardize_dtype(ids.dtype)
        if "int" not in dtype:
            raise InputError(f"expected ids as a tensor of integers, got {dtype}. {AS_INTEGERS}")
        matrix = self.int8
        embedded = ops.take(self.embeddings, ids, axis=0) if matrix is None else matrix.take(ids)
        return ops.cast(embedded, self.compute_dtype) * math.sqrt(self.d_model)

    def factors(self, x: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Rows (..., D) and a matrix (V, D). Their products are the logits of x (..., D)."""
        return x, self.embeddings

    def logits(self, x: KerasTensor) -> KerasTensor:
        """States (..., D) to logits, unnormalized log-probabilities (..., V)."""
        if self.int8 is not None:
            return unflatten_positions(self.int8(flatten_positions(x)), like=x)
        rows, matrix = (ops.cast(factor, self.compute_dtype) for factor in self.factors(x))
        rows = kernels.current().matmul_transposed(flatten_positions(rows), matrix)
        return unflatten_positions(rows, like=x)

    def compute_output_shape(self, ids_shape: Shape) -> Shape:
        return (*ids_shape, self.d_model)

    def get_config(self) -> dict[str, Any]:
        sizes = {"vocabulary_size": self.vocabulary_size, "d_model": self.d_model}
        return super().get_config() | sizes
