"""The Transformer's parts as Keras layers: `keras.ops` only, so any Keras backend runs them."""

import keras  # noqa: F401  first: see tf_transformer/registration.py

from tf_transformer.layers.attention import Attended, MultiHeadAttention
from tf_transformer.layers.block import BlockOutput, DecoderLayer, EncoderLayer
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.layer_drop import LayerDrop
from tf_transformer.layers.masks import causal_mask, combine_masks, padding_mask
from tf_transformer.layers.normalization import LayerNorm, RMSNorm
from tf_transformer.layers.position import (
    LearnedPosition,
    PositionEncoding,
    Positions,
    SinusoidalPosition,
    sinusoids,
)
from tf_transformer.layers.relative_position import (
    AlibiPosition,
    RelativePosition,
    RotaryPosition,
    T5Position,
)
from tf_transformer.layers.residual import Residual
from tf_transformer.layers.stack import Decoder, Encoder, StackOutput
from tf_transformer.layers.stored import KeyValue

__all__ = [
    "AlibiPosition",
    "Attended",
    "BlockOutput",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "KeyValue",
    "LayerDrop",
    "LayerNorm",
    "LearnedPosition",
    "MultiHeadAttention",
    "PositionEncoding",
    "Positions",
    "RMSNorm",
    "RelativePosition",
    "Residual",
    "RotaryPosition",
    "SinusoidalPosition",
    "StackOutput",
    "T5Position",
    "TokenEmbedding",
    "causal_mask",
    "combine_masks",
    "padding_mask",
    "sinusoids",
]
