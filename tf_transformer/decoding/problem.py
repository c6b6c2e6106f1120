"""The arguments and results of searches.

A search calls a step function, which returns the logits of next tokens. It does not depend on a
model. It gets a problem for each sentence, and options for all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.errors import InputError

# The log-probability of excluded tokens. It is finite, so that no score is infinite or NaN.
NEG_INF = -1e9

Size: TypeAlias = int | KerasTensor
"""A size that is known, or an int32 scalar."""


class StepState(NamedTuple):
    """The state of a step function: any nests of tensors.

    The first axis of a leaf is the batch, unless the leaf is a scalar. Searches that never remove a
    sentence from the batch allow other leaves: under XLA, on JAX, and for a single sentence.
    """

    per_hypothesis: Any  # leaves (B, W, ...), reordered with the beam
    per_sentence: Any = ()  # shared by the hypotheses of a sentence, never reordered


StepResult = tuple[KerasTensor, StepState]
StepFunction = Callable[[KerasTensor, StepState, KerasTensor], StepResult]
"""step(ids (B, W), state, index) -> (logits (B, W, V) of the next tokens, new state).

`ids` are the newest tokens. `index` is their position, an int32 scalar; the start token is at 0.
"""


class StepOptions(NamedTuple):
    """The sizes and options of a search, from which a model makes its step function."""

    beam_size: int  # W, hypotheses of each sentence
    max_length: Size  # largest number of steps
    static_shapes: bool = False  # whether tensors keep their shapes in all steps, as XLA needs
    capacity: Size | None = None  # steps that static shapes have room for at first; None: for all
    coverage_penalty: float = 0.0  # β of `coverage.coverage_penalty`


class CacheSchedule(NamedTuple):
    """The capacities of a static state during a search.

    The cost of a step grows with the capacity, and most searches end long before their limit.
    """

    capacities: Sequence[Size]  # numbers of positions, smallest first
    resize: Callable[[StepState, Size], StepState]  # changes a state's capacity


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
    c = 0 is length^α, as in Transformers, Marian and CTranslate2. Lengths are int (...), numbers of
    tokens with the end token. The penalty of length 1 is 1.

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


def pick(values: KerasTensor, columns: KerasTensor) -> KerasTensor:
    """values[b, columns[b, w], ...]: (B, X, ...) by (B, W) to (B, W, ...)."""
    return kernels.current().gather(values, columns, axis=1, batch_dims=1)


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
    # int32 (B, C): phrases that every hypothesis contains, each with the end id behind it, then
    # padding. A phrase that begins with the start id is another form of the phrase before it, for
    # the beginning of a hypothesis. For `beam_search`; see `rank_with_terms`.
    terms: KerasTensor | tuple = ()
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

    No n-gram is repeated in a hypothesis, as in Paulus et al. 2017, section 2.5. The penalty of
    repetition multiplies log-probabilities of tokens that the hypothesis already contains, and
    scores include it. Keskar et al. 2019, section 4.1, divide logits instead.
    """

    word_starts: tuple[int, ...] = ()  # ids of pieces that begin a word; see `Problem.prefix`
    word_ends: tuple[int, ...] = ()  # ids of pieces that may follow a word; (): all ids
    excluded: tuple[int, ...] = ()  # ids that are never chosen, besides padding and start
    no_repeat_ngram_size: int = 0  # the number of tokens, n; 0: off
    repetition_penalty: float = 1.0  # at least 1, which is off
    grammar: Grammar | None = None  # excludes tokens that must not follow

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

    In a beam search, the exponent of the length penalty is at least 0, and a scalar tensor may
    change it between calls of one graph. Without a beam, the penalty scales scores only.
    """

    max_length: Size  # the largest limit of the sentences, L; may be an int32 scalar
    special: SpecialIds
    beam_size: int = 4  # live hypotheses of a sentence in a beam search, W
    num_hypotheses: int = 1  # the number that a beam search returns, N <= W
    penalty: LengthPenalty = LengthPenalty()
    early_stopping: bool | str = True  # ends the search of a sentence; in `beam.EARLY_STOPPING`
    bounded: bool = True  # whether to stop when the N best cannot improve; the results are equal
    constraints: Constraints = field(default_factory=Constraints)
    drop_finished: bool = False  # whether finished sentences leave the batch; see `run_search`
