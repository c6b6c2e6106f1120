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
)
from tf_transformer.decoding.sampling import Sampling, greedy_search, sample

__all__ = [
    "NEG_INF",
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
    "sample",
]
