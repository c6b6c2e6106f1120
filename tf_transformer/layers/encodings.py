"""All position encodings by name."""

from collections.abc import Callable
from typing import Any

from tf_transformer.config import LayerConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.later.half_sinusoids import (
    FairseqPosition,
    HalfSinusoids,
    MarianPosition,
    OpenNMTPosition,
)
from tf_transformer.layers.later.learned_position import LearnedPosition
from tf_transformer.layers.later.relative_position import (
    AlibiPosition,
    RelativePosition,
    RotaryPosition,
    T5Position,
)
from tf_transformer.layers.position import SinusoidalPosition
from tf_transformer.layers.position_encoding import PositionEncoding

# The values of `model.position`. Each function takes the configuration of a stack, whether the
# stack is causal, and arguments of Keras' layers.
ENCODINGS: dict[str, Callable[..., PositionEncoding]] = {
    "sinusoidal": lambda config, is_causal, **options: SinusoidalPosition(**options),
    "learned": lambda config, is_causal, **options: LearnedPosition(config.max_length, **options),
    "rotary": lambda config, is_causal, **options: RotaryPosition(**options),
    "relative": lambda config, is_causal, **options: RelativePosition(
        config.key_dim, config.max_relative_distance, **options
    ),
    "t5": lambda config, is_causal, **options: T5Position(config.num_heads, is_causal, **options),
    "alibi": lambda config, is_causal, **options: AlibiPosition(**options),
    "sinusoidal_halves": lambda config, is_causal, **options: HalfSinusoids(**options),
    "marian": lambda config, is_causal, **options: MarianPosition(**options),
    "opennmt": lambda config, is_causal, **options: OpenNMTPosition(**options),
    "fairseq": lambda config, is_causal, **options: FairseqPosition(**options),
    "none": lambda config, is_causal, **options: PositionEncoding(**options),
}


def make_position(config: LayerConfig, is_causal: bool, **options: Any) -> PositionEncoding:
    """Makes the encoding that `config.position` names, with options of Keras' layers."""
    if config.position not in ENCODINGS:
        raise InputError(
            f"model.position must be one of {', '.join(ENCODINGS)}, got {config.position!r}."
        )
    return ENCODINGS[config.position](config, is_causal, **options)
