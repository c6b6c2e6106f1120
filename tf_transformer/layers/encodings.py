"""All position encodings by name, and the learned table (paper Table 3, row E)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.half_sinusoids import (
    FairseqPosition,
    HalfSinusoids,
    MarianPosition,
    OpenNMTPosition,
)
from tf_transformer.layers.position import SinusoidalPosition
from tf_transformer.layers.position_encoding import PositionEncoding
from tf_transformer.layers.relative_position import (
    AlibiPosition,
    RelativePosition,
    RotaryPosition,
    T5Position,
)
from tf_transformer.layers.shape import Shape


@keras.saving.register_keras_serializable(package="tf_transformer")
class LearnedPosition(PositionEncoding):
    """Adds a learned vector for each position (paper Table 3, row E).

    Args:
        max_length: number of positions in the table.

    Call arguments:
        x: float tensor (B, T, D).

    Returns:
        float tensor (B, T, D).

    Raises:
        ValueError: if the sequence is longer than the table. A graph with an unknown length does
            not check this.

    Example:
        >>> LearnedPosition(max_length=6)(np.zeros((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    def __init__(self, max_length: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_length = max_length

    def build(self, input_shape: Shape) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.max_length, input_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=input_shape[-1] ** -0.5),
        )

    def encodings(self, positions: KerasTensor, d_model: int) -> KerasTensor:
        length = positions.shape[0]
        if length is not None and length > self.max_length:
            raise ValueError(
                f"the learned position table has {self.max_length} positions, but the sequence "
                f"has {length}. Shorten the text, train with a larger model.max_length, or use "
                "model.position=sinusoidal, which has no limit."
            )
        return ops.take(self.table, positions, axis=0)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"max_length": self.max_length}


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


def make_position(config: ModelConfig, is_causal: bool, **options: Any) -> PositionEncoding:
    """Makes the encoding that `config.position` names.

    Args:
        config: configuration of the stack that uses the encoding.
        is_causal: whether later positions are hidden.
        **options: arguments of Keras' layers, such as `name`.

    Raises:
        InputError: if the name is unknown.
    """
    if config.position not in ENCODINGS:
        raise InputError(
            f"model.position must be one of {', '.join(ENCODINGS)}, got {config.position!r}."
        )
    return ENCODINGS[config.position](config, is_causal, **options)
