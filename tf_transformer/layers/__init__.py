"""The parts of the Transformer as Keras layers. They run on every Keras backend."""

from tf_transformer.config import LayerConfig
from tf_transformer.layers.attention import Attended, Attention, CrossAttention, SelfAttention
from tf_transformer.layers.block import BlockOutput, DecoderLayer, EncoderLayer, Residual
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.earlier_attention import MultiHeadAttention  # noqa: F401  registers it
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.later.biased_embedding import BiasedEmbedding, ZeroStartEmbedding
from tf_transformer.layers.later.gated_feed_forward import GatedFeedForward
from tf_transformer.layers.later.half_sinusoids import (
    FairseqPosition,
    HalfSinusoids,
    MarianPosition,
    OpenNMTPosition,
)
from tf_transformer.layers.later.layer_drop import LayerDrop
from tf_transformer.layers.later.learned_position import LearnedPosition
from tf_transformer.layers.later.linear_attention import LinearAttention
from tf_transformer.layers.later.relative_position import (
    AlibiPosition,
    RelativePosition,
    RotaryPosition,
    T5Position,
)
from tf_transformer.layers.later.rms_norm import RMSNorm
from tf_transformer.layers.later.sparse_attention import LocalAttention, StridedAttention
from tf_transformer.layers.later.ssru import SSRU
from tf_transformer.layers.masks import causal_mask, combine_masks, padding_mask
from tf_transformer.layers.normalization import LayerNorm
from tf_transformer.layers.position import SinusoidalPosition, sinusoids
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.stack import Decoder, Encoder, StackOutput
from tf_transformer.layers.stored import KeyValue

__all__ = [
    "SSRU",
    "AlibiPosition",
    "Attended",
    "Attention",
    "BiasedEmbedding",
    "BlockOutput",
    "CrossAttention",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FairseqPosition",
    "FeedForward",
    "GatedFeedForward",
    "HalfSinusoids",
    "KeyValue",
    "LayerConfig",
    "LayerDrop",
    "LayerNorm",
    "LearnedPosition",
    "LinearAttention",
    "LocalAttention",
    "MarianPosition",
    "OpenNMTPosition",
    "PositionEncoding",
    "Positions",
    "RMSNorm",
    "RelativePosition",
    "Residual",
    "RotaryPosition",
    "SelfAttention",
    "SinusoidalPosition",
    "StackOutput",
    "StridedAttention",
    "T5Position",
    "TokenEmbedding",
    "ZeroStartEmbedding",
    "causal_mask",
    "combine_masks",
    "padding_mask",
    "sinusoids",
]
