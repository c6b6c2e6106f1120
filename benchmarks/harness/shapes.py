"""Sizes of the models that systems are compared with, and the ids that all of them share."""

from typing import Any, NamedTuple

THREADS = 2
PAD_ID, START_ID, END_ID = 0, 1, 2
FIRST_FREE_ID = 4  # 3: unknown


class Shape(NamedTuple):
    """Sizes of a Transformer."""

    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    vocabulary_size: int

    @property
    def opus_options(self) -> dict[str, Any]:
        """Options of `ModelConfig` for the shape of an OPUS-MT model; empty for the others."""
        for name, activation in OPUS.items():
            if self == SHAPES[name]:
                biases = {"attention_bias": True, "output_bias": True}
                return {"position": "marian", "activation": activation} | biases
        return {}

    def __str__(self) -> str:
        return (
            f"{self.num_layers} layers, d_model {self.d_model}, d_ff {self.d_ff}, "
            f"{self.num_heads} heads, vocabulary {self.vocabulary_size:,}"
        )


# Written out, because the processes of other systems import nothing of this project. A test
# compares them with the presets.
SHAPES = {
    "base": Shape(6, 512, 2048, 8, 32_000),
    "big": Shape(6, 1024, 4096, 16, 32_000),
    "tiny": Shape(4, 128, 256, 4, 8000),
    "opus": Shape(6, 512, 2048, 8, 54_688),
    "tc_big": Shape(6, 1024, 4096, 16, 54_776),
}
OPUS = {"opus": "swish", "tc_big": "relu"}  # shapes of OPUS-MT's models, with their activations
