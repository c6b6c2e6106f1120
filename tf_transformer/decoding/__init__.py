"""Search over a step function: `keras.ops` only, independent of any model."""

from tf_transformer.decoding.beam import beam_search
from tf_transformer.decoding.constraints import Constraints
from tf_transformer.decoding.hypotheses import (
    NEG_INF,
    CacheSchedule,
    Hypotheses,
    SpecialIds,
    StepFunction,
    StepState,
    length_penalty,
)
from tf_transformer.decoding.sampling import Sampling, greedy_search, sample

NEVER = NEG_INF  # until all users have the new name

__all__ = [
    "NEG_INF",
    "CacheSchedule",
    "Constraints",
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
