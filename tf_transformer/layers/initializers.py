"""Initial values of matrices that share one variable."""

from collections.abc import Sequence

import keras
from keras import ops


class ConcatenatedInitializer(keras.initializers.Initializer):
    """Fills the matrices that share one variable, each as if it had its own variable.

    Args:
        sizes: number of columns of each matrix.
        initializers: one for each matrix.
    """

    def __init__(
        self, sizes: Sequence[int], initializers: Sequence[keras.initializers.Initializer]
    ):
        self.sizes = sizes
        self.initializers = initializers

    def __call__(self, shape, dtype=None):
        blocks = zip(self.sizes, self.initializers, strict=True)
        return ops.concatenate([fill((shape[0], size), dtype) for size, fill in blocks], axis=1)
