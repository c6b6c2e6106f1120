"""The options of the layers of one stack."""

from dataclasses import dataclass
from typing import Literal

from tf_transformer.config.option import free, not_negative, positive, rate
from tf_transformer.config.values import check
from tf_transformer.errors import InputError

Attention = Literal["full", "local", "strided", "linear"]
Activation = Literal["relu", "gelu", "swish", "swiglu"]
Normalization = Literal["layer_norm", "rms_norm"]
Imported = Literal["sinusoidal_halves", "marian", "opennmt", "fairseq"]  # positions
Position = Literal["sinusoidal", "learned", "rotary", "relative", "t5", "alibi", "none", Imported]


@dataclass(frozen=True)
class LayerConfig:
    """Sizes and variants of the layers of one stack, an encoder or a decoder.

    `ModelConfig` describes the fields; its properties `encoder` and `decoder` are records of this
    class. Zeros get their values: `key_dim` 0 becomes d_model / num_heads, `value_dim` 0 becomes
    `key_dim`, and `num_key_value_heads` 0 becomes `num_heads`.

    Example:
        >>> config = LayerConfig(d_model=12, num_heads=3)
        >>> config.key_dim, config.value_dim, config.num_key_value_heads
        (4, 4, 3)
    """

    num_layers: int = free(4, positive)
    d_model: int = free(128, positive)
    d_ff: int = free(256, positive)
    num_heads: int = free(4, positive)
    key_dim: int = free(0, not_negative)
    value_dim: int = free(0, not_negative)
    num_key_value_heads: int = free(0, not_negative)
    dropout_rate: float = free(0.0, rate)
    attention_dropout_rate: float = free(0.0, rate)
    feed_forward_dropout_rate: float = free(0.0, rate)
    layer_drop_rate: float = free(0.0, rate)
    position: Position = "sinusoidal"
    max_length: int = free(1024, positive)
    max_relative_distance: int = free(16, positive)
    attention: Attention = "full"
    attention_window: int = free(256, positive)
    activation: Activation = "relu"
    normalization: Normalization = "layer_norm"
    norm_epsilon: float = free(1e-6, positive)
    norm_first: bool = False
    attention_bias: bool = False
    remat: bool = False

    def __post_init__(self) -> None:
        check(self, "", open_to="position")
        if not self.key_dim and self.d_model % self.num_heads:
            raise InputError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads}), or "
                "key_dim must be given."
            )
        object.__setattr__(self, "key_dim", self.key_dim or self.d_model // self.num_heads)
        object.__setattr__(self, "value_dim", self.value_dim or self.key_dim)
        groups = self.num_key_value_heads or self.num_heads
        object.__setattr__(self, "num_key_value_heads", groups)
        if self.num_heads % groups:
            raise InputError(
                f"num_heads ({self.num_heads}) must be a multiple of num_key_value_heads "
                f"({groups})."
            )
