"""Search over a step function: `keras.ops` only, and no knowledge of any model."""

from tf_transformer.decoding.beam import beam_search
from tf_transformer.decoding.constraints import Constraints
from tf_transformer.decoding.hypotheses import (
    NEVER,
    Growth,
    Hypotheses,
    SpecialIds,
    StepFunction,
    StepState,
    length_penalty,
)
from tf_transformer.decoding.sampling import Sampling, greedy_search, sample

__all__ = [
    "NEVER",
    "Constraints",
    "Growth",
    "Hypotheses",
    "Sampling",
    "SpecialIds",
    "StepFunction",
    "StepState",
    "beam_search",
    "greedy_search",
    "length_penalty",
    "sample",
]
