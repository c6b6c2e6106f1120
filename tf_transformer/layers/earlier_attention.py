"""The attention layer of `.keras` files of earlier versions."""

import keras
from keras import KerasTensor

from tf_transformer.layers.attention import Attended, CrossAttention, SelfAttention
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class MultiHeadAttention(SelfAttention, CrossAttention):
    """Self-attention or cross-attention, as its shapes in the file say.

    Version 0.2 had this one class for both. Make a `SelfAttention` or a `CrossAttention` instead.
    """

    def build(  # type: ignore[override]
        self, query_shape: Shape, value_shape: Shape | None = None
    ) -> None:
        if value_shape is None:
            SelfAttention.build(self, query_shape)
        else:
            CrossAttention.build(self, query_shape, value_shape)

    def call(  # type: ignore[override]
        self,
        query: KerasTensor,
        value: KerasTensor | None = None,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> Attended:
        if value is None:
            return SelfAttention.call(self, query, attention_mask, training)
        return CrossAttention.call(self, query, value, attention_mask, training)
