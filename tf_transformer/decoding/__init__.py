"""Search over a step function. It uses `keras.ops` only, and does not depend on a model."""

from tf_transformer.decoding.beam import beam_search
from tf_transformer.decoding.problem import (
    NEG_INF,
    CacheSchedule,
    Constraints,
    Hypotheses,
    LengthPenalty,
    Problem,
    SearchOptions,
    SpecialIds,
    Step,
    StepFunction,
    StepOptions,
    StepState,
    is_off,
)
from tf_transformer.decoding.sampling import Sampling, greedy_search, sample
from tf_transformer.decoding.terms import SMALLEST_BEAM

__all__ = [
    "NEG_INF",
    "SMALLEST_BEAM",
    "CacheSchedule",
    "Constraints",
    "Hypotheses",
    "LengthPenalty",
    "Problem",
    "Sampling",
    "SearchOptions",
    "SpecialIds",
    "Step",
    "StepFunction",
    "StepOptions",
    "StepState",
    "beam_search",
    "greedy_search",
    "is_off",
    "sample",
]
