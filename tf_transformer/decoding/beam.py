"""Beam search with the paper's length penalty (paper section 6.1).

Each step extends the W live hypotheses of a sentence by every token and ranks the results by
log-probability. A hypothesis ends with the end token, or at the sentence's limit. The hypotheses
among the W best that end are finished: they leave the beam with a score that never changes. The W
best hypotheses that do not end stay live. A sentence is done when a rule of `EARLY_STOPPING` says
so, or when no continuation of a live hypothesis can reach the N best.

Equal scores: the hypothesis that finished earlier wins. Then the rank of the parent decides, then
the id of the last token; the lower one wins.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import KerasTensor, ops, tree

from tf_transformer.decoding.constraints import SoFar, rank_together
from tf_transformer.decoding.loop import run_search
from tf_transformer.decoding.problem import (
    NEG_INF,
    Hypotheses,
    LengthPenalty,
    Problem,
    SearchOptions,
    Step,
    StepState,
    is_off,
    pick,
    set_column,
)
from tf_transformer.decoding.terms import Extensions, Progress, ends_of_words, rank_with_terms
from tf_transformer.errors import InputError
from tf_transformer.kernels.top_k import plain_top_k


class BeamState(NamedTuple):
    """The state of a beam search between two steps."""

    index: KerasTensor  # int32 scalar: number of tokens chosen so far
    tokens: KerasTensor  # int32 (B, W): newest tokens of live hypotheses
    ids: KerasTensor  # int32 (B, W, L): all tokens of live hypotheses
    log_probabilities: KerasTensor  # float32 (B, W), live, best first
    finished: Hypotheses  # N = W, best first
    done: KerasTensor  # bool (B,): True for sentences with a final result
    state: StepState
    problem: Problem
    progress: Any = ()  # a `Progress` in the terms; () without them


class Candidates(NamedTuple):
    """The 2W best extensions of a sentence's live hypotheses, best first."""

    parents: KerasTensor  # int32 (B, 2W): the live hypothesis that is extended
    tokens: KerasTensor  # int32 (B, 2W)
    log_probabilities: KerasTensor  # float32 (B, 2W)
    ended: KerasTensor  # bool (B, 2W)


EarlyStopping = Callable[[KerasTensor, KerasTensor, KerasTensor], KerasTensor]
"""rule(worst, live, bound) -> bool (B,), whether the search of a sentence ends.

All arguments are float32 (B,). `worst`: the score of the worst of W finished hypotheses, `NEG_INF`
while there are fewer. `live`: the score of the best live hypothesis if it ended now. `bound`: the
best score that any continuation can have.
"""

# The names are Transformers'.
EARLY_STOPPING: dict[bool | str, EarlyStopping] = {
    True: lambda worst, live, bound: worst > NEG_INF / 2,
    False: lambda worst, live, bound: worst >= live,
    "never": lambda worst, live, bound: worst >= bound,
}


def beam_search(step: Step, problem: Problem, options: SearchOptions) -> Hypotheses:
    """Finds the N best hypotheses with a beam of W (paper section 6.1).

    Args:
        step: the step function and its first state. Its bonus is added to the scores of hypotheses
            that end.
        problem: the limits and other facts of each sentence.
        options: the options of the search.

    Returns:
        `Hypotheses`, sorted by score.

    Raises:
        InputError: if beam size, number of hypotheses or exponent is out of range, or for an
            unknown rule.

    Example:
        >>> from tf_transformer.decoding import SpecialIds
        >>> log_p = np.log([0.01, 0.01, 0.5, 0.4, 0.08]).astype("float32")  # id 2 ends a sentence
        >>> def step(ids, state, index):
        ...     return ops.broadcast_to(log_p, (*ids.shape, 5)), state
        >>> special = SpecialIds(pad=0, start=1, end=2)
        >>> options = SearchOptions(max_length=3, special=special, beam_size=2)
        >>> problem = Problem(limits=np.array([3]))
        >>> best = beam_search(Step(step, StepState(())), problem, options)
        >>> np.asarray(best.ids).tolist()
        [[[2, 0, 0]]]
    """
    _require_valid(options)

    def extend(now: BeamState) -> BeamState:
        logits, state = step.function(now.tokens, now.state, now.index)
        so_far = SoFar(now.ids, now.index, now.problem)
        candidates = _candidates(now, _extensions(logits, now, so_far, options), options)
        bonuses = None if step.bonus is None else step.bonus(state)
        finished = _finish(now, candidates, options.penalty, bonuses)
        extended = _continue(now, candidates, finished, state)
        if not is_off(now.problem.terms):
            ends_word = ops.take(ends_of_words(options, logits.shape[-1]), extended.tokens, axis=0)
            progress = extended.progress.after(
                extended.tokens, ends_word, extended.log_probabilities
            )
            extended = extended._replace(progress=progress)
        return extended._replace(done=_done(extended, options))

    finished = run_search(
        extend,
        _start(step, problem.within_limits(), options),
        lambda now: now.finished,
        options,
        step.cache_schedule,
    )
    best = Hypotheses(*(field[:, : options.num_hypotheses] for field in finished))
    return best._replace(ids=ops.where(best.lengths[..., None] > 0, best.ids, options.special.pad))


def _require_valid(options: SearchOptions) -> None:
    beam_size, num_hypotheses, alpha = options.beam_size, options.num_hypotheses, options.penalty[0]
    if not 1 <= num_hypotheses <= beam_size:
        raise InputError(
            "expected 1 <= num_hypotheses <= beam_size, "
            f"got {num_hypotheses} with a beam of {beam_size}."
        )
    if not ops.is_tensor(alpha) and alpha < 0:
        raise InputError(f"the length penalty's exponent must not be negative, got {alpha}.")
    if options.early_stopping not in EARLY_STOPPING:
        raise InputError(
            f"early_stopping must be True, False or 'never', got {options.early_stopping!r}."
        )


def _start(step: Step, problem: Problem, options: SearchOptions) -> BeamState:
    batch, beam_size = ops.shape(problem.limits)[0], options.beam_size
    max_length, special, terms = options.max_length, options.special, problem.terms

    def full(shape: tuple, value: float, dtype: str = "int32") -> KerasTensor:
        return ops.full((batch, beam_size, *shape), value, dtype)

    # At first, only the empty hypothesis is live. The first step fills the other rows.
    first = ops.equal(ops.arange(beam_size), 0)
    return BeamState(
        index=ops.zeros((), "int32"),
        tokens=full((), special.start),
        ids=full((max_length,), special.pad),
        log_probabilities=ops.where(first, 0.0, full((), NEG_INF, "float32")),
        finished=Hypotheses(
            ids=full((max_length,), special.pad),
            lengths=full((), 0),
            log_probabilities=full((), NEG_INF, "float32"),
            scores=full((), NEG_INF, "float32"),
        ),
        done=ops.zeros((batch,), "bool"),
        state=step.start,
        problem=problem,
        progress=() if is_off(terms) else Progress.start(terms, beam_size, special),
    )


def _extensions(
    logits: KerasTensor, now: BeamState, so_far: SoFar, options: SearchOptions
) -> Extensions:
    """The 2W best extensions of the live hypotheses.

    Each live hypothesis has one extension by the end token. So at most W of them end with it, and
    at least W can stay live.
    """
    totals, count = now.log_probabilities, 2 * options.beam_size
    if not is_off(now.problem.terms):
        return rank_with_terms(logits, totals, now.progress, so_far, options)
    ranked, parents = rank_together(logits, totals, count, so_far, options)
    best, place = plain_top_k(ranked.log_probabilities, count)
    return Extensions(pick(parents, place), pick(ranked.tokens, place), best)


def _candidates(now: BeamState, best: Extensions, options: SearchOptions) -> Candidates:
    """The extensions, and whether each ends."""
    at_limit = now.index + 1 >= now.problem.limits  # (B,)
    ends = ops.equal(best.tokens, options.special.end)
    return Candidates(*best, ended=ops.logical_or(ends, at_limit[:, None]))


def _finish(
    now: BeamState, candidates: Candidates, penalty: LengthPenalty, bonuses: KerasTensor | None
) -> Hypotheses:
    """Selects the W best among finished hypotheses and candidates that end with this step."""
    beam_size = now.tokens.shape[1]
    parents, tokens, log_probabilities, ended = (field[:, :beam_size] for field in candidates)
    length = now.index + 1
    new = ops.logical_and(ended, log_probabilities > NEG_INF / 2)
    new = ops.logical_and(new, ops.logical_not(now.done)[:, None])  # (B, W)
    scores = log_probabilities / penalty(length)
    if bonuses is not None:
        scores = scores + pick(bonuses, parents)
    ending = Hypotheses(
        ids=set_column(pick(now.ids, parents), now.index, tokens),
        lengths=ops.where(new, length, 0),
        log_probabilities=ops.where(new, log_probabilities, NEG_INF),
        scores=ops.where(new, scores, NEG_INF),
    )
    pool = Hypotheses(
        *(ops.concatenate(pair, axis=1) for pair in zip(now.finished, ending, strict=True))
    )
    _, rank = plain_top_k(pool.scores, beam_size)
    return Hypotheses(*(pick(field, rank) for field in pool))


def _continue(
    now: BeamState, candidates: Candidates, finished: Hypotheses, state: StepState
) -> BeamState:
    """Makes the next state, with the W best candidates that do not end."""
    beam_size = now.tokens.shape[1]
    kept = ops.where(candidates.ended, 2 * NEG_INF, candidates.log_probabilities)
    places = ops.arange(2 * beam_size) + 2 * beam_size * ops.cast(candidates.ended, "int32")
    _, rank = plain_top_k(ops.cast(-places, "float32"), beam_size)  # (B, W)
    parents = pick(candidates.parents, rank)
    tokens = pick(candidates.tokens, rank)
    per_hypothesis = tree.map_structure(lambda leaf: pick(leaf, parents), state.per_hypothesis)
    return BeamState(
        index=now.index + 1,
        tokens=tokens,
        ids=set_column(pick(now.ids, parents), now.index, tokens),
        log_probabilities=pick(kept, rank),
        finished=finished,
        done=now.done,
        state=StepState(per_hypothesis, state.per_sentence),
        problem=now.problem,
        progress=() if is_off(now.problem.terms) else now.progress.of(parents),
    )


def _done(now: BeamState, options: SearchOptions) -> KerasTensor:
    """The sentences that are done after a step, bool (B,)."""
    penalty, rule = options.penalty, options.early_stopping
    best_live = ops.max(now.log_probabilities, axis=1)
    dead = best_live < NEG_INF / 2  # no hypothesis can continue
    # A live hypothesis can only lose probability. The largest penalty gives the best score.
    bound = best_live / penalty(now.problem.limits)
    needed = now.finished.scores[:, options.num_hypotheses - 1]
    worst = now.finished.scores[:, -1]
    if not is_off(now.problem.terms):  # poor hypotheses with all phrases end in any step
        rule, worst = (False if rule is True else rule), needed
    done = EARLY_STOPPING[rule](worst, best_live / penalty(now.index), bound)
    if options.bounded:  # the worst hypothesis that is returned cannot change
        done = ops.logical_or(done, needed >= bound)
    return ops.logical_or(now.done, ops.logical_or(done, dead))
