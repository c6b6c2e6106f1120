"""A gated feed-forward network, SwiGLU (Shazeer 2020)."""

from typing import ClassVar

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import silu
from tf_transformer.layers.dense import ConcatenatedInitializer, Dense
from tf_transformer.layers.feed_forward import FeedForward


@keras.saving.register_keras_serializable(package="tf_transformer")
class GatedFeedForward(FeedForward):
    """FFN(x) = (h σ(h) · (x V + c)) W₂ + b₂, with h = x W₁ + b₁ (the activation `swiglu`).

    The hidden layer has size F. The layer has three matrices of D·F numbers, `FeedForward` has two;
    with 2/3 of F both have the same size. `FeedForward` describes arguments and calls.

    Example:
        >>> GatedFeedForward(d_ff=16)(np.ones((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    # Differs from Shazeer 2020: the gated unit has biases, like equation 2 of the paper.

    activations: ClassVar[tuple[str, ...]] = ("swiglu",)

    def _hidden_layer(self) -> keras.layers.Layer:
        d_ff = self.config.d_ff
        fill = [keras.initializers.GlorotUniform() for _ in range(2)]
        return Dense(  # W₁ and V are one variable
            2 * d_ff,
            kernel_initializer=ConcatenatedInitializer((d_ff, d_ff), fill),
            dtype=self.dtype_policy,
            name="hidden",
        )

    def activate(self, hidden: KerasTensor) -> KerasTensor:
        hidden, factor = ops.split(hidden, 2, axis=-1)
        return silu(hidden) * factor
