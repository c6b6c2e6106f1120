"""What searches are given and what they return.

A search knows a step function, not a model: anything that gives logits for next tokens.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras import KerasTensor, ops

# Log-probability of what cannot be. Finite, so that no score is infinite or NaN.
NEVER = -1e9


class StepState(NamedTuple):
    """What a step function keeps from step to step: any nests of tensors."""

    own: Any  # leaves (B, W, ...): a row a hypothesis, which follows it wherever the beam goes
    shared: Any = ()  # leaves (B, ...), of all hypotheses of a sentence; the search moves none


StepFunction = Callable[[KerasTensor, StepState, KerasTensor], tuple[KerasTensor, StepState]]
"""step(ids (B, W), state, index) -> (logits (B, W, V), state).

`ids` are the newest tokens, at position `index` (int32 scalar, the start token being at 0); the
logits are those of the tokens that follow.
"""


class Growth(NamedTuple):
    """How a state whose tensors keep their size gets room for more tokens as a search goes on.

    A step costs as much as there is room, and most searches end long before the longest may.
    """

    lengths: Sequence[int | KerasTensor]  # rising: what there is room for at first, then next, ...
    widen: Callable[[StepState, int | KerasTensor], StepState]  # a state, to one of these lengths


class SpecialIds(NamedTuple):
    """The ids a search must know; padding and start are never chosen."""

    pad: int
    start: int
    end: int


class Hypotheses(NamedTuple):
    """Translations, best first.

    Each ends with the end token or has as many tokens as its sentence's limit allows.
    Where fewer were found than asked for, `ids` are padding, `lengths` is 0, `scores` is `NEVER`.
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
