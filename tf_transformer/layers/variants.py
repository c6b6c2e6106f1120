"""The layers that options choose by name: attention, feed-forward network, normalization."""

from typing import Any

from tf_transformer.config import LayerConfig
from tf_transformer.layers.attention import SelfAttention
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.later.gated_feed_forward import GatedFeedForward
from tf_transformer.layers.later.linear_attention import LinearAttention
from tf_transformer.layers.later.rms_norm import RMSNorm
from tf_transformer.layers.later.sparse_attention import LocalAttention, StridedAttention
from tf_transformer.layers.later.ssru import SSRU
from tf_transformer.layers.normalization import LayerNorm

# The values of `model.decoder_attention`; those of `model.attention` are all but ssru.
SELF_ATTENTION: dict[str, type[SelfAttention]] = {
    "full": SelfAttention,
    "local": LocalAttention,
    "strided": StridedAttention,
    "linear": LinearAttention,
    "ssru": SSRU,
}
# The values of `model.activation`.
FEED_FORWARD: dict[str, type[FeedForward]] = {
    "relu": FeedForward,
    "gelu": FeedForward,
    "swish": FeedForward,
    "swiglu": GatedFeedForward,
}
# The values of `model.normalization`.
NORMALIZATIONS: dict[str, type[LayerNorm]] = {"layer_norm": LayerNorm, "rms_norm": RMSNorm}


def make_norm(config: LayerConfig, **options: Any) -> LayerNorm:
    """Makes the normalization that the configuration of a stack names, with options of Keras."""
    return NORMALIZATIONS[config.normalization](config.norm_epsilon, **options)
