"""Matrix products inside layers of this package."""

import itertools
from collections.abc import Sequence
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.int8 import Int8Matrix, Int8Policy
from tf_transformer.layers.shape import Shape, flatten_positions, size_of


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


class ConcatenatedInitializer(keras.initializers.Initializer):
    """Fills matrices of these numbers of columns in one variable, each as if it were alone."""

    def __init__(
        self, sizes: Sequence[int], initializers: Sequence[keras.initializers.Initializer]
    ):
        self.sizes = sizes
        self.initializers = initializers

    def __call__(self, shape: Shape, dtype: str | None = None) -> KerasTensor:
        blocks = zip(self.sizes, self.initializers, strict=True)
        return ops.concatenate([fill((shape[0], size), dtype) for size, fill in blocks], axis=1)


class HeadProjection(Dense):
    """One product for all matrices with the same input; the result is split into heads.

    Args:
        sizes: number of heads, H, and size of a head, K, of each matrix (D, H·K).
        initializers: one for each matrix.
        **options: arguments of `keras.layers.Dense`.
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]],
        initializers: Sequence[keras.initializers.Initializer],
        **options: Any,
    ):
        columns = [heads * size for heads, size in sizes]
        fill = ConcatenatedInitializer(columns, initializers) if columns[1:] else initializers[0]
        super().__init__(sum(columns), kernel_initializer=fill, **options)
        self.sizes = tuple(sizes)

    def heads(self, x: KerasTensor) -> list[KerasTensor]:
        """Projects x (B, T, D) to heads (B, H, T, K) for each matrix.

        One `einsum` moves the axes of matrices of equal size together. TensorFlow starts it seven
        times as fast as oneDNN's transposition. A single position needs only a reshape.
        """
        rows, length, sizes = self(flatten_positions(x)), size_of(x, 1), self.sizes
        is_one = isinstance(length, int) and length == 1
        if len(set(sizes)) == 1 and not is_one:
            together = ops.reshape(rows, (-1, length, len(sizes), *sizes[0]))
            return ops.unstack(ops.einsum("btnhk->nbhtk", together), len(sizes))
        ends = list(itertools.accumulate(heads * size for heads, size in sizes))[:-1]
        parts = zip(ops.split(rows, ends, axis=-1) if ends else [rows], sizes, strict=True)
        if is_one:
            return [ops.reshape(part, (-1, heads, 1, size)) for part, (heads, size) in parts]
        by_position = [ops.reshape(part, (-1, length, *size)) for part, size in parts]
        return [ops.einsum("bthk->bhtk", part) for part in by_position]
