"""Equal layers one after another: what encoder and decoder share (paper section 3.1)."""

from typing import ClassVar

import keras
from keras import KerasTensor

from tf_transformer.layers.normalization import LayerNorm
from tf_transformer.layers.remat import recomputed


class Stack(keras.layers.Layer):
    """`num_layers` layers of `layer_class`, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        **layer_options: the arguments of `layer_class`.
    """

    layer_class: ClassVar[type[keras.layers.Layer]]

    def __init__(
        self,
        num_layers: int,
        remat: bool = False,
        name=None,
        dtype=None,
        trainable=True,
        **layer_options,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.remat = remat
        self.layer_options = layer_options
        self.layers = [
            self.layer_class(**layer_options, dtype=self.dtype_policy, name=f"layer_{i}")
            for i in range(num_layers)
        ]
        self.final_norm = (
            LayerNorm(dtype=self.dtype_policy) if layer_options.get("norm_first") else None
        )

    def build_all(self, *shapes) -> None:
        """Makes the weights of all layers; the first shape is that of what goes through them."""
        for layer in self.layers:
            layer.build(*shapes)
        if self.final_norm is not None:
            self.final_norm.build(shapes[0])

    def through(
        self, x: KerasTensor, *inputs: KerasTensor | None, training: bool | None
    ) -> KerasTensor:
        """`x` after all layers, each of which is given `inputs`, too."""
        for layer in self.layers:
            if self.remat and training:
                x = recomputed(layer, x, *inputs, training=training)
            else:
                x = layer(x, *inputs, training=training)
        return self.normalized(x)

    def normalized(self, x: KerasTensor) -> KerasTensor:
        """What comes out of the last layer, normalised where the layers leave that to the end."""
        return x if self.final_norm is None else self.final_norm(x)

    def get_config(self):
        sizes = {"num_layers": self.num_layers, "remat": self.remat}
        return super().get_config() | sizes | self.layer_options
