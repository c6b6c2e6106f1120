"""The encoder layer and the encoder stack (paper section 3.1)."""

import keras
from keras import KerasTensor

from tf_transformer.layers.attention import MultiHeadAttention
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.residual import Residual
from tf_transformer.layers.stack import Stack


@keras.saving.register_keras_serializable(package="tf_transformer")
class EncoderLayer(keras.layers.Layer):
    """Self-attention, then feed-forward, each in a residual connection (paper section 3.1).

    Args:
        num_heads: number of attention heads, H.
        key_dim: size of a head's queries and keys, K.
        d_ff: size of the feed-forward hidden layer, F.
        value_dim: size of a head's values; `key_dim` when None.
        dropout_rate: dropout on each sub-layer's output.
        attention_dropout_rate: dropout on attention weights.
        feed_forward_dropout_rate: dropout inside the feed-forward network.
        attention_bias: whether attention projections have biases.
        norm_first: pre-norm instead of the paper's post-norm.

    Call arguments:
        x: float tensor (B, S, D).
        attention_mask: bool tensor that broadcasts to (B, H, S, S), True = may attend.
        training: whether dropout is on.

    Returns:
        float tensor (B, S, D).

    Example:
        >>> layer = EncoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> layer(np.ones((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float = 0.0,
        feed_forward_dropout_rate: float = 0.0,
        attention_bias: bool = False,
        norm_first: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.options = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "d_ff": d_ff,
            "value_dim": value_dim,
            "dropout_rate": dropout_rate,
            "attention_dropout_rate": attention_dropout_rate,
            "feed_forward_dropout_rate": feed_forward_dropout_rate,
            "attention_bias": attention_bias,
            "norm_first": norm_first,
        }
        policy = self.dtype_policy
        self.self_attention = MultiHeadAttention(
            num_heads, key_dim, value_dim, attention_bias, attention_dropout_rate, dtype=policy
        )
        self.feed_forward = FeedForward(d_ff, feed_forward_dropout_rate, dtype=policy)
        self.attention_residual = Residual(dropout_rate, norm_first, dtype=policy)
        self.feed_forward_residual = Residual(dropout_rate, norm_first, dtype=policy)

    def build(self, input_shape):
        for part in (
            self.self_attention,
            self.feed_forward,
            self.attention_residual,
            self.feed_forward_residual,
        ):
            part.build(input_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        x = self.attention_residual(
            x,
            sublayer=lambda y: self.self_attention(
                y, attention_mask=attention_mask, training=training
            ),
            training=training,
        )
        return self.feed_forward_residual(
            x, sublayer=lambda y: self.feed_forward(y, training=training), training=training
        )

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | self.options


@keras.saving.register_keras_serializable(package="tf_transformer")
class Encoder(Stack):
    """A stack of `num_layers` encoder layers, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        **layer_options: the arguments of `EncoderLayer`.

    Call arguments and returns are those of `EncoderLayer`.
    """

    layer_class = EncoderLayer

    def build(self, input_shape):
        self.build_all(input_shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.through(x, attention_mask, training=training)

    def compute_output_shape(self, input_shape):
        return input_shape
