"""Search over a step function: `keras.ops` only, and no knowledge of any model."""

from tf_transformer.decoding.beam import beam_search
from tf_transformer.decoding.hypotheses import Hypotheses, SpecialIds, StepFunction, length_penalty
from tf_transformer.decoding.sampling import greedy_search

__all__ = [
    "Hypotheses",
    "SpecialIds",
    "StepFunction",
    "beam_search",
    "greedy_search",
    "length_penalty",
]
