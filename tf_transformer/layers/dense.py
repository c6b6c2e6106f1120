"""Matrix products inside layers of this package."""

from typing import Any

import keras
from keras import KerasTensor

from tf_transformer.layers.int8 import Int8Matrix, Int8Policy
from tf_transformer.layers.shape import Shape


class Dense(keras.layers.Dense):
    """A `keras.layers.Dense` that Keras does not quantize.

    A layer that is loaded from a file makes its products from its own configuration, which does not
    say whether Keras has quantized them since. So a model with quantized products could be saved,
    but not loaded.
    """

    int8: Int8Matrix | None = None  # Wᵀ, for inference with `Int8Policy`

    def build(self, input_shape: Shape) -> None:
        shape, policy = (self.units, input_shape[-1]), self.dtype_policy
        if not (isinstance(policy, Int8Policy) and policy.covers(*shape)):
            super().build(input_shape)
            return
        self.int8 = Int8Matrix(shape, policy.product, name="kernel")
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.built = True

    def call(self, inputs: KerasTensor, training: bool | None = None) -> KerasTensor:
        if self.int8 is None:
            return super().call(inputs, training)
        x = self.int8(inputs)
        x = x if self.bias is None else x + self.bias
        return x if self.activation is None else self.activation(x)

    def quantize(self, mode: Any = None, **options: Any) -> None:
        """Raises an error, of which `quantize` of a model makes a warning."""
        raise NotImplementedError(
            f"{self.path} stays in {self.compute_dtype}: a file could not hold it in {mode}."
        )
