"""The arguments and results of searches.

A search uses a step function, not a model: anything that returns logits of next tokens.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras import KerasTensor, ops

# Log-probability of the impossible. Finite, so that no score is infinite or NaN.
NEG_INF = -1e9


class StepState(NamedTuple):
    """The state of a step function: any nests of tensors.

    Leaves that are not scalars have the batch as their first axis, except in searches that never
    remove a sentence from the batch: under XLA, on JAX, and for a single sentence.
    """

    per_hypothesis: Any  # leaves (B, W, ...), reordered with the beam
    per_sentence: Any = ()  # shared by the hypotheses of a sentence, never reordered


StepFunction = Callable[[KerasTensor, StepState, KerasTensor], tuple[KerasTensor, StepState]]
"""step(ids (B, W), state, index) -> (logits (B, W, V), state).

`ids` are the newest tokens, at position `index` (int32 scalar; the start token is at 0). The
logits are those of the next tokens.
"""


class StepOptions(NamedTuple):
    """What a model's step function is made for."""

    beam_size: int  # W, hypotheses per sentence
    max_length: int | KerasTensor  # the largest number of steps
    # Whether tensors keep their shapes from step to step, as XLA needs it.
    static_shapes: bool = False
    capacity: int | KerasTensor | None = None  # steps that static shapes have room for at first
    coverage_penalty: float = 0.0  # β of `coverage.Coverage`


class CacheSchedule(NamedTuple):
    """The capacities of a static state during a search.

    A step costs as much as there is capacity, and most searches end long before the longest may.
    """

    capacities: Sequence[int | KerasTensor]  # numbers of positions, rising
    resize: Callable[[StepState, int | KerasTensor], StepState]  # a state, to one of them


class SpecialIds(NamedTuple):
    """Ids with a meaning for searches; padding and start are never chosen."""

    pad: int
    start: int
    end: int


class Hypotheses(NamedTuple):
    """Translations, best first.

    Each ends with the end token or has as many tokens as its sentence's limit allows. Missing
    hypotheses have padding as `ids`, 0 as `lengths` and `NEG_INF` as `scores`.
    """

    ids: KerasTensor  # int32 (B, N, L): tokens with the end token, then padding
    lengths: KerasTensor  # int32 (B, N): tokens with the end token
    log_probabilities: KerasTensor  # float32 (B, N), nats
    scores: KerasTensor  # float32 (B, N): log-probability over length penalty


def length_penalty(lengths: KerasTensor, alpha: float) -> KerasTensor:
    """((5 + length) / 6)^α (Wu et al. 2016, equation 14; the paper's section 6.1 has α = 0.6).

    Args:
        lengths: int tensor, tokens with the end token.
        alpha: α; 0 turns the penalty off.

    Returns:
        float32 tensor of the same shape, 1 at length 1.
    """
    return ops.power((5.0 + ops.cast(lengths, "float32")) / 6.0, alpha)


def set_column(ids: KerasTensor, index: KerasTensor, tokens: KerasTensor) -> KerasTensor:
    """`ids` (..., L) with `tokens` (...) at position `index` of the last axis."""
    here = ops.equal(ops.arange(ops.shape(ids)[-1]), index)  # (L,)
    return ops.where(here, tokens[..., None], ids)
