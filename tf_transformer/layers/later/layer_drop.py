"""LayerDrop: training skips whole layers (Fan et al. 2020)."""

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class LayerDrop(Dropout):
    """Returns the output of a layer. In training, returns its input with probability `rate`.

    From Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout". Each call
    draws once for all its examples. A skipped layer is still computed, but gets no gradient.
    `Dropout` describes the arguments.

    Call arguments:
        x: float tensor (B, T, D), the layer's input.
        output: float tensor (B, T, D), the layer's output.
        training: whether layers may be skipped; if not, `output` is returned.

    Example:
        >>> LayerDrop(0.1)(np.zeros((1, 2, 3)), np.ones((1, 2, 3)), training=False).shape
        TensorShape([1, 2, 3])
    """

    def call(  # type: ignore[override]
        self, x: KerasTensor, output: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        if not training or not self.rate:
            return output
        is_skipped = keras.random.uniform((), seed=self.seed_generator) < self.rate
        return ops.where(is_skipped, x, output)

    def compute_output_shape(self, x_shape: Shape, output_shape: Shape | None = None) -> Shape:
        return x_shape
