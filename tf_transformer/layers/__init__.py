"""The Transformer's parts as Keras layers: `keras.ops` only, so any Keras backend runs them."""

from tf_transformer.layers.attention import (
    Folded,
    KeyValue,
    MultiHeadAttention,
    attention_weights,
    laid_out_weights,
    lay_out,
    scaled_dot_product_attention,
)
from tf_transformer.layers.decoder import Decoder, DecoderLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.encoder import Encoder, EncoderLayer
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.masks import causal_mask, combine_masks, padding_mask
from tf_transformer.layers.normalization import LayerNorm
from tf_transformer.layers.position import LearnedPosition, SinusoidalPosition, sinusoids
from tf_transformer.layers.residual import Residual

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Folded",
    "KeyValue",
    "LayerNorm",
    "LearnedPosition",
    "MultiHeadAttention",
    "Residual",
    "SinusoidalPosition",
    "TokenEmbedding",
    "attention_weights",
    "causal_mask",
    "combine_masks",
    "laid_out_weights",
    "lay_out",
    "padding_mask",
    "scaled_dot_product_attention",
    "sinusoids",
]
