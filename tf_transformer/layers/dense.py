"""Matrix products inside layers of this package."""

from typing import Any

import keras


class Dense(keras.layers.Dense):
    """A `keras.layers.Dense` that Keras does not quantize.

    A layer that is loaded from a file makes its products from its own configuration, which does not
    say whether Keras has quantized them since. So a model with quantized products could be saved,
    but not loaded.
    """

    def quantize(self, mode: Any = None, **options: Any) -> None:
        """Raises an error, of which `quantize` of a model makes a warning."""
        raise NotImplementedError(
            f"{self.path} stays in {self.compute_dtype}: a file could not hold it in {mode}."
        )
