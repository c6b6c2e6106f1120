"""Matrices of int8 numbers, a quarter as large as in float32."""

from collections.abc import Callable
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.int8_product import plain_int8_product
from tf_transformer.layers.shape import Shape
from tf_transformer.machine.thresholds import SMALLEST_INT8_MATRIX


@keras.saving.register_keras_serializable(package="tf_transformer")
class Int8Policy(keras.dtype_policies.DTypePolicy):
    """The dtype policy of a model for inference: float32, with large matrices of int8 numbers.

    Attributes:
        product: the product of these matrices, with the arguments of `plain_int8_product`.

    Example:
        >>> Int8Policy().compute_dtype
        'float32'
    """

    product = staticmethod(plain_int8_product)

    def __init__(self, name: str = "float32"):
        super().__init__(name)

    def covers(self, *shape: int) -> bool:
        """Whether a matrix of this shape is large enough to gain time."""
        rows, columns = shape
        return rows * columns >= SMALLEST_INT8_MATRIX


class Int8Matrix(keras.layers.Layer):
    """A matrix W (N, K) of int8 numbers, with a scale for each row.

    Args:
        shape: (N, K).
        product: as in `Int8Policy`.
        **options: arguments of Keras' layers, such as `name`.

    Call arguments:
        x: float32 tensor (R, K).

    Returns:
        float32 tensor (R, N), the product x Wᵀ; see `kernels/int8_product.py`.

    Example:
        >>> matrix = Int8Matrix((3, 2))
        >>> _ = matrix.integers.assign([[1, 2], [3, 4], [5, 6]])
        >>> _ = matrix.highest.assign([127.0, 127.0, 63.5])
        >>> matrix.take(np.array([0, 2])).numpy().tolist()
        [[1.0, 2.0], [2.5, 3.0]]
    """

    def __init__(
        self, shape: tuple[int, int], product: Callable = plain_int8_product, **options: Any
    ):
        super().__init__(**options)
        self.shape, self.product = shape, product
        self.build()

    def build(self, x_shape: Shape | None = None) -> None:
        self.integers = self._weight("integers", self.shape, "int8")
        self.highest = self._weight("highest", self.shape[:1], "float32")

    def _weight(self, name: str, shape: Shape, dtype: str) -> keras.Variable:
        return self.add_weight(shape, "zeros", dtype, name=name, trainable=False)

    def call(self, x: KerasTensor) -> KerasTensor:
        return self.product(x, self.integers, self.highest)

    def take(self, indices: KerasTensor) -> KerasTensor:
        """The rows of W at indices (...): float32 (..., K)."""
        rows = ops.cast(ops.take(self.integers, indices, axis=0), "float32")
        return rows * (ops.take(self.highest, indices) / 127)[..., None]
