"""The layers that options choose by name: self-attention and the feed-forward network."""

from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.gated_feed_forward import GatedFeedForward
from tf_transformer.layers.linear_attention import LinearAttention
from tf_transformer.layers.self_attention import SelfAttention
from tf_transformer.layers.sparse_attention import LocalAttention, StridedAttention

# The values of `model.attention`.
SELF_ATTENTION: dict[str, type[SelfAttention]] = {
    "full": SelfAttention,
    "local": LocalAttention,
    "strided": StridedAttention,
    "linear": LinearAttention,
}
# The values of `model.activation`.
FEED_FORWARD: dict[str, type[FeedForward]] = {
    "relu": FeedForward,
    "gelu": FeedForward,
    "swish": FeedForward,
    "swiglu": GatedFeedForward,
}
