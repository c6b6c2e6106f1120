"""The arguments and results of searches.

A search calls a step function, which returns the logits of next tokens. It does not depend on a
model.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras import KerasTensor, ops

# The log-probability of excluded tokens. It is finite, so that no score is infinite or NaN.
NEG_INF = -1e9


class StepState(NamedTuple):
    """The state of a step function: any nests of tensors.

    The first axis of a leaf is the batch, unless the leaf is a scalar. Searches that never remove a
    sentence from the batch allow other leaves: under XLA, on JAX, and for a single sentence.
    """

    per_hypothesis: Any  # leaves (B, W, ...), reordered with the beam
    per_sentence: Any = ()  # shared by the hypotheses of a sentence, never reordered


StepFunction = Callable[[KerasTensor, StepState, KerasTensor], tuple[KerasTensor, StepState]]
"""step(ids (B, W), state, index) -> (logits (B, W, V) of the next tokens, new state).

`ids` are the newest tokens. `index` is their position, an int32 scalar; the start token is at 0.
"""


class StepOptions(NamedTuple):
    """The sizes and options of a search, from which a model makes its step function."""

    beam_size: int  # W, hypotheses of each sentence
    max_length: int | KerasTensor  # largest number of steps
    static_shapes: bool = False  # whether tensors keep their shapes in all steps, as XLA needs
    capacity: int | KerasTensor | None = None  # steps that static shapes have room for at first
    coverage_penalty: float = 0.0  # β of `coverage.coverage_penalty`


class CacheSchedule(NamedTuple):
    """The capacities of a static state during a search.

    The cost of a step grows with the capacity, and most searches end long before their limit.
    """

    capacities: Sequence[int | KerasTensor]  # numbers of positions, smallest first
    resize: Callable[[StepState, int | KerasTensor], StepState]  # changes a state's capacity


class SpecialIds(NamedTuple):
    """Ids with a meaning for searches. A search never chooses padding and start."""

    pad: int
    start: int
    end: int


class Hypotheses(NamedTuple):
    """The results of a search for each sentence, best first.

    A hypothesis ends with the end token, or at its sentence's limit. A missing hypothesis has
    padding as `ids`, 0 as `lengths` and `NEG_INF` as `scores`.
    """

    ids: KerasTensor  # int32 (B, N, L): tokens with the end token, then padding
    lengths: KerasTensor  # int32 (B, N): number of tokens with the end token
    log_probabilities: KerasTensor  # float32 (B, N), nats
    scores: KerasTensor  # float32 (B, N): log-probability divided by length penalty


class LengthPenalty(NamedTuple):
    """((c + length) / (c + 1))^α, by which the log-probability of a hypothesis is divided.

    c = 5 is the penalty of Wu et al. 2016, equation 14, and of the paper (section 6.1, α = 0.6).
    c = 0 is length^α, as in Transformers, Marian and CTranslate2.

    Call arguments:
        lengths: int tensor of any shape (...), number of tokens with the end token.

    Returns:
        float32 tensor (...). The penalty of length 1 is 1.

    Example:
        >>> float(LengthPenalty(1.0)(np.array(7))), float(LengthPenalty(1.0, 0.0)(np.array(7)))
        (2.0, 7.0)
    """

    alpha: float | KerasTensor = 0.6  # α; 0 turns the penalty off
    offset: float = 5.0  # c

    def __call__(self, lengths: KerasTensor) -> KerasTensor:
        ratio = (self.offset + ops.cast(lengths, "float32")) / (self.offset + 1.0)
        return ops.power(ratio, self.alpha)


def set_column(ids: KerasTensor, index: KerasTensor, tokens: KerasTensor) -> KerasTensor:
    """Writes `tokens` (...) into `ids` (..., L) at position `index` of the last axis."""
    here = ops.equal(ops.arange(ops.shape(ids)[-1]), index)  # (L,)
    return ops.where(here, tokens[..., None], ids)
