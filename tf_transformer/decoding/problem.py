"""What a search gets: a step function, a problem for each sentence, and options for all of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.hypotheses import (
    CacheSchedule,
    LengthPenalty,
    SpecialIds,
    StepFunction,
    StepState,
)
from tf_transformer.errors import InputError

Grammar = Callable[[KerasTensor, KerasTensor, KerasTensor, KerasTensor], KerasTensor]
"""grammar(log-probabilities, ids, count, facts) -> log-probabilities.

It sets the log-probabilities (B, W, V) of ids that must not follow to `NEG_INF`. `ids` (B, W, L)
are the tokens so far, `count` is their number, and `facts` (B, X) are the grammar's facts of each
sentence.
"""


class Step(NamedTuple):
    """A step function with its first state."""

    function: StepFunction
    start: StepState  # the rows of a sentence are equal
    # The capacities of a static state; None: it has capacity for the whole search.
    cache_schedule: CacheSchedule | None = None
    # Numbers (B, W), at most 0, which a beam search adds to the scores of hypotheses that end.
    bonus: Callable[[StepState], KerasTensor] | None = None


class Problem(NamedTuple):
    """What the search of each sentence must observe. A field that is () is not used.

    All fields have the batch as their first axis, so a problem is divided like the batch.
    """

    limits: KerasTensor  # int32 (B,): the largest number of tokens, at least 1
    # int32 (B,): the smallest number of tokens, with the end token, at most the limit
    min_lengths: KerasTensor | tuple = ()
    # int32 (B, P): the first tokens of every hypothesis, then padding. Other constraints do not
    # apply to these tokens, but their log-probability counts. The start id allows any of
    # `Constraints.word_starts`.
    prefix: KerasTensor | tuple = ()
    facts: KerasTensor | tuple = ()  # int32 (B, X): facts for `Constraints.grammar`
    uniforms: KerasTensor | tuple = ()  # float32 (B, W, L): numbers in [0, 1) for `sample`

    def within_limits(self) -> "Problem":
        """This problem with minimum lengths of at most the limits."""
        if is_off(self.min_lengths):
            return self
        return self._replace(min_lengths=ops.minimum(self.min_lengths, self.limits))


def is_off(value: KerasTensor | tuple) -> bool:
    """Whether a field of a `Problem` is not used."""
    return isinstance(value, tuple)


@dataclass(frozen=True)
class Constraints:
    """Limits on the choices of a search that are the same for all sentences.

    Attributes:
        word_starts: ids of the pieces that begin a word; see `Problem.prefix`.
        excluded: ids that are never chosen, in addition to padding and start.
        no_repeat_ngram_size: no sequence of this many tokens appears twice in a hypothesis
            (Paulus et al. 2017, section 2.5); 0: off.
        repetition_penalty: factor of the log-probabilities of tokens that the hypothesis already
            contains; 1: off. Scores include it. Keskar et al. 2019, section 4.1, divide logits
            instead.
        grammar: function that excludes tokens which must not follow; None: all may follow.

    Raises:
        InputError: if a number is out of range.
    """

    word_starts: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    grammar: Grammar | None = None

    def __post_init__(self) -> None:
        if self.no_repeat_ngram_size < 0:
            raise InputError(
                f"no_repeat_ngram_size must not be negative, got {self.no_repeat_ngram_size}."
            )
        if self.repetition_penalty < 1:
            raise InputError(
                "repetition_penalty must be at least 1 (less would reward repetition), "
                f"got {self.repetition_penalty}."
            )


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search.

    Attributes:
        max_length: the largest limit of the sentences, L; an int32 scalar may be a tensor.
        special: ids of padding, start and end.
        beam_size: live hypotheses of a sentence in a beam search, W.
        num_hypotheses: number of hypotheses that a beam search returns, N <= W.
        penalty: the length penalty. Its exponent is at least 0 in a beam search, and a scalar
            tensor may change it between calls of one graph. Without a beam, it scales scores only.
        early_stopping: the rule that ends the beam search of a sentence, a key of
            `beam.EARLY_STOPPING`.
        bounded: whether to stop the beam search of a sentence when its N best cannot improve. The
            results are the same with and without it.
        constraints: limits on the choices.
        drop_finished: whether to remove finished sentences from the batch; see `run_search`.
    """

    max_length: int | KerasTensor
    special: SpecialIds
    beam_size: int = 4
    num_hypotheses: int = 1
    penalty: LengthPenalty = LengthPenalty()
    early_stopping: bool | str = True
    bounded: bool = True
    constraints: Constraints = field(default_factory=Constraints)
    drop_finished: bool = False
