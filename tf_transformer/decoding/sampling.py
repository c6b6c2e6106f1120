"""Greedy search and sampling. Both choose one token at a time and never change it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.constraints import Ranked, SoFar, rank_next
from tf_transformer.decoding.loop import run_search
from tf_transformer.decoding.problem import (
    NEG_INF,
    Hypotheses,
    Problem,
    SearchOptions,
    Step,
    StepState,
    is_off,
    set_column,
)
from tf_transformer.errors import InputError
from tf_transformer.kernels.top_k import plain_top_k

Choose = Callable[[Ranked, KerasTensor], tuple[KerasTensor, KerasTensor]]
"""choose(ranked tokens, random numbers) -> (tokens, their log-probabilities), (B, W) each."""


@dataclass(frozen=True)
class Sampling:
    """The distribution that tokens are drawn from.

    With `top_p` below 1, only the fewest likeliest tokens with at least this total probability can
    be drawn (nucleus sampling, Holtzman et al. 2020), after temperature and `top_k`.
    """

    temperature: float = 1.0  # divides logits; a scalar tensor may change between calls of a graph
    top_k: int = 0  # number of likeliest tokens that can be drawn; 0: all
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not ops.is_tensor(self.temperature) and self.temperature <= 0:
            raise InputError(
                f"temperature must be positive, got {self.temperature}. "
                "For the likeliest token, use greedy search: a beam of 1 without sampling."
            )
        if self.top_k < 0:
            raise InputError(f"top_k must not be negative, got {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p must be above 0 and at most 1, got {self.top_p}.")


class SampleState(NamedTuple):
    """The state of a search that adds one token to each hypothesis in each step."""

    index: KerasTensor  # int32 scalar: number of tokens chosen so far
    tokens: KerasTensor  # int32 (B, W): the newest tokens
    ids: KerasTensor  # int32 (B, W, L): all tokens, then padding
    lengths: KerasTensor  # int32 (B, W)
    log_probabilities: KerasTensor  # float32 (B, W)
    finished: KerasTensor  # bool (B, W)
    state: StepState
    problem: Problem

    @property
    def done(self) -> KerasTensor:
        """Which sentences have a final result, bool (B,)."""
        return ops.all(self.finished, axis=1)


def greedy_search(step: Step, problem: Problem, options: SearchOptions) -> Hypotheses:
    """Adds the likeliest next token until the end token or the sentence's limit.

    `beam_search` describes the arguments; the step function has one hypothesis of each sentence, as
    the result has. Of equally likely tokens, the lowest id wins.
    """

    def likeliest(ranked: Ranked, numbers: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        # Keras' argmax reads the bits of numbers, which LiteRT and ONNX cannot.
        best = plain_top_k(ranked.log_probabilities, 1).indices[..., 0]
        return _take(ranked.tokens, best), ops.max(ranked.log_probabilities, axis=-1)

    return _run(step, problem._replace(uniforms=()), options, 1, 1, likeliest)


def sample(step: Step, problem: Problem, options: SearchOptions, sampling: Sampling) -> Hypotheses:
    """Draws each next token at random, for N hypotheses of each sentence.

    The random numbers belong to the problem. So the samples of a sentence depend on its own numbers
    only, and are the same in every batch.

    `beam_search` describes the arguments. The step function has N hypotheses of each sentence, and
    `problem.uniforms` is (B, N, L or more). The options of `sampling` do not change
    log-probabilities. The hypotheses are sorted by score, and some of them may be equal.

    Raises:
        InputError: for a problem without random numbers.
    """
    if isinstance(problem.uniforms, tuple):
        raise InputError("sampling needs random numbers. Give the problem `uniforms` (B, N, L).")
    hypotheses = problem.uniforms.shape[1]

    def draw(ranked: Ranked, numbers: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        weights = kept_probabilities(ranked.log_probabilities, sampling)  # (B, N, k)
        # The inverse of the cumulative distribution: count the tokens that end below the number.
        ends = ops.cumsum(weights, axis=-1)
        below = ops.cast(ends <= numbers[..., None] * ends[..., -1:], "int32")
        # Rounding may select a position after the last one. A token of weight 0 is never drawn.
        last = ops.max(ops.where(weights > 0, ops.arange(weights.shape[-1]), 0), axis=-1)
        drawn = ops.minimum(ops.sum(below, axis=-1), ops.cast(last, "int32"))
        return _take(ranked.tokens, drawn), _take(ranked.log_probabilities, drawn)

    chosen = _run(step, problem, options, hypotheses, sampling.top_k, draw)
    _, order = plain_top_k(chosen.scores, hypotheses)  # (B, N)
    return Hypotheses(*(_in_order(field, order) for field in chosen))


def kept_probabilities(log_p: KerasTensor, sampling: Sampling) -> KerasTensor:
    """Applies temperature, `top_k` and `top_p` to ranked tokens.

    Log-probabilities (..., k), largest first, give unnormalized probabilities (..., k); 0 for
    tokens that cannot be drawn. `NEG_INF` may stand at any place.
    """
    if sampling.top_k:  # excluded tokens may stand among the first ones and do not count
        rank = ops.cumsum(ops.cast(log_p > NEG_INF / 2, "int32"), axis=-1)
        log_p = ops.where(rank <= sampling.top_k, log_p, NEG_INF)
    probabilities = ops.softmax(log_p / sampling.temperature, axis=-1)
    if sampling.top_p == 1:
        return probabilities
    before = ops.cumsum(probabilities, axis=-1) - probabilities
    return ops.where(before < sampling.top_p, probabilities, 0.0)


def _run(
    step: Step, problem: Problem, options: SearchOptions, hypotheses: int, k: int, choose: Choose
) -> Hypotheses:
    """Runs a search of a number of hypotheses of each sentence.

    `choose` selects the next token of each from the k likeliest tokens; 0: from all.
    """
    special = options.special

    def extend(now: SampleState) -> SampleState:
        logits, state = step.function(now.tokens, now.state, now.index)
        so_far = SoFar(now.ids, now.index, now.problem)
        ranked = rank_next(logits, k or logits.shape[-1], so_far, options)
        uniforms = now.problem.uniforms
        numbers = () if is_off(uniforms) else ops.take(uniforms, now.index, axis=2)
        tokens, log_p = choose(ranked, numbers)
        live = ops.logical_not(now.finished)
        tokens = ops.where(live, tokens, special.pad)
        lengths = now.lengths + ops.cast(live, "int32")
        at_limit = lengths >= now.problem.limits[:, None]
        ended = ops.logical_or(ops.equal(tokens, special.end), at_limit)
        return now._replace(
            index=now.index + 1,
            tokens=tokens,
            ids=set_column(now.ids, now.index, tokens),
            lengths=lengths,
            log_probabilities=now.log_probabilities + ops.where(live, log_p, 0.0),
            finished=ops.logical_or(now.finished, ended),
            state=state,
        )

    rows = (ops.shape(problem.limits)[0], hypotheses)
    start = SampleState(
        index=ops.zeros((), "int32"),
        tokens=ops.full(rows, special.start, "int32"),
        ids=ops.full((*rows, options.max_length), special.pad, "int32"),
        lengths=ops.zeros(rows, "int32"),
        log_probabilities=ops.zeros(rows, "float32"),
        finished=ops.zeros(rows, "bool"),
        state=step.start,
        problem=problem.within_limits(),
    )
    return run_search(
        extend, start, lambda now: _hypotheses(now, options), options, step.cache_schedule
    )


def _hypotheses(final: SampleState, options: SearchOptions) -> Hypotheses:
    penalty, pad = options.penalty, options.special.pad
    possible = final.log_probabilities > NEG_INF / 2
    return Hypotheses(
        ids=ops.where(possible[..., None], final.ids, pad),
        lengths=ops.where(possible, final.lengths, 0),
        log_probabilities=ops.where(possible, final.log_probabilities, NEG_INF),
        scores=ops.where(possible, final.log_probabilities / penalty(final.lengths), NEG_INF),
    )


def _take(values: KerasTensor, place: KerasTensor) -> KerasTensor:
    """values[b, w, place[b, w]]: (B, W, k) by (B, W) to (B, W)."""
    count = values.shape[-1]
    starts = ops.arange(ops.size(place), dtype="int32") * count  # (B·W,)
    flat = starts + ops.reshape(ops.cast(place, "int32"), (-1,))
    return ops.reshape(ops.take(ops.reshape(values, (-1,)), flat, axis=0), ops.shape(place))


def _in_order(values: KerasTensor, order: KerasTensor) -> KerasTensor:
    order = ops.reshape(order, (*ops.shape(order), *[1] * (len(values.shape) - 2)))
    return ops.take_along_axis(values, order, axis=1)
