"""Beam search with the paper's length penalty (paper section 6.1).

Each step extends the W live hypotheses of a sentence by every token and ranks the results by
log-probability. Of the W best, those that end (by the end token, or at the sentence's limit)
are finished: they leave the beam with their score and never change again. The W best that do
not end live on. A sentence is done when W hypotheses are finished, or when no live one can
still reach the N best, however it goes on.

Equal scores: the hypothesis finished earlier wins, then the one whose parent ranked higher,
then the one whose last token has the lower id.
"""

from collections.abc import Callable
from typing import NamedTuple

from keras import KerasTensor, ops, tree

from tf_transformer.decoding.constraints import Constraints, Ranked, rank_together
from tf_transformer.decoding.hypotheses import (
    NEVER,
    Growth,
    Hypotheses,
    SpecialIds,
    StepFunction,
    StepState,
    length_penalty,
    set_column,
)
from tf_transformer.decoding.loop import Given, run_to_the_end
from tf_transformer.errors import InputError


class BeamState(NamedTuple):
    """All that changes from step to step."""

    index: KerasTensor  # int32 scalar: tokens chosen so far
    tokens: KerasTensor  # int32 (B, W): newest tokens of live hypotheses
    ids: KerasTensor  # int32 (B, W, L): all tokens of live hypotheses
    log_probabilities: KerasTensor  # float32 (B, W), live, best first
    finished: Hypotheses  # N = W, best first
    done: KerasTensor  # bool (B,): sentences whose result is final
    state: StepState
    given: Given


class Candidates(NamedTuple):
    """The 2W best extensions of a sentence's live hypotheses, best first."""

    parents: KerasTensor  # int32 (B, 2W): which live hypothesis each extends
    tokens: KerasTensor  # int32 (B, 2W)
    log_probabilities: KerasTensor  # float32 (B, 2W)
    ended: KerasTensor  # bool (B, 2W)


def beam_search(
    step: StepFunction,
    state: StepState,
    limits: KerasTensor,
    max_length: int | KerasTensor,
    special: SpecialIds,
    beam_size: int = 4,
    alpha: float = 0.6,
    num_hypotheses: int = 1,
    early_stop: bool = True,
    constraints: Constraints | None = None,
    bonus: Callable[[StepState], KerasTensor] | None = None,
    shrink: bool = False,
    compiled: bool = False,
    growth: Growth | None = None,
) -> Hypotheses:
    """The N best of the hypotheses that a beam of W finds.

    Args:
        step: gives the logits of next tokens; see `StepFunction`.
        state: the step function's first state, the W rows of a sentence all alike.
        limits: int32 tensor (B,): the most tokens a sentence may get, at least 1.
        max_length: the largest limit, L.
        special: ids of padding, start and end.
        beam_size: live hypotheses a sentence, W.
        alpha: exponent of the length penalty, not negative.
        num_hypotheses: how many to return, N <= W.
        early_stop: leave a sentence when nothing can improve. Results are the same without.
        constraints: what may not be chosen.
        bonus: from the state to what is added to the score of a hypothesis that ends with this
            step, (B, W), never above 0. None: nothing is.
        shrink: leave out sentences that are done; see `run_to_the_end`.
        compiled: whether a compiler will see the search; another way to the same results.
        growth: how the state gets room as hypotheses grow. None: it has room.

    Returns:
        `Hypotheses`, sorted by score.

    Raises:
        InputError: for a beam, a number of hypotheses or an exponent out of range.
    """
    if not 1 <= num_hypotheses <= beam_size:
        raise InputError(
            "expected 1 <= num_hypotheses <= beam_size, "
            f"got {num_hypotheses} with a beam of {beam_size}."
        )
    if alpha < 0:
        raise InputError(f"the length penalty's exponent must not be negative, got {alpha}.")

    constraints = constraints or Constraints()

    def extend(now: BeamState) -> BeamState:
        logits, state = step(now.tokens, now.state, now.index)
        allowed = now.given.into(constraints)
        ranked, parents = rank_together(
            *(logits, now.log_probabilities, 2 * beam_size, now.ids, now.index),
            *(special, allowed, compiled),
        )
        candidates = _candidates(now, ranked, parents, special.end)
        bonuses = None if bonus is None else bonus(state)
        finished = _finish(now, candidates, alpha, bonuses)
        return _live_on(now, candidates, finished, state, alpha, worst, early_stop)

    worst = num_hypotheses - 1  # of the finished that are asked for
    start = _start(state, Given.of(limits, constraints), beam_size, max_length, special)
    finished = run_to_the_end(
        *(extend, start, lambda now: now.done, lambda now: now.finished, max_length, shrink),
        growth,
    )
    best = Hypotheses(*(field[:, :num_hypotheses] for field in finished))
    return best._replace(ids=ops.where(best.lengths[..., None] > 0, best.ids, special.pad))


def _start(
    state: StepState, given: Given, beam_size: int, max_length, special: SpecialIds
) -> BeamState:
    batch = ops.shape(given.limits)[0]

    def full(shape, value, dtype="int32"):
        return ops.full((batch, beam_size, *shape), value, dtype)

    # One live hypothesis, the empty one; the other rows become real at the first step.
    first = ops.equal(ops.arange(beam_size), 0)
    return BeamState(
        index=ops.zeros((), "int32"),
        tokens=full((), special.start),
        ids=full((max_length,), special.pad),
        log_probabilities=ops.where(first, 0.0, full((), NEVER, "float32")),
        finished=Hypotheses(
            ids=full((max_length,), special.pad),
            lengths=full((), 0),
            log_probabilities=full((), NEVER, "float32"),
            scores=full((), NEVER, "float32"),
        ),
        done=ops.zeros((batch,), "bool"),
        state=state,
        given=given,
    )


def _candidates(now: BeamState, ranked: Ranked, parents: KerasTensor, end_id: int) -> Candidates:
    """The 2W best of the ranked extensions.

    A live hypothesis has one extension by the end token, so at most W of the 2W are those, and
    at least W do not end by themselves.
    """
    best, place = ops.top_k(ranked.log_probabilities, 2 * now.tokens.shape[1])
    tokens = _pick(ranked.tokens, place)  # (B, 2W)
    at_limit = now.index + 1 >= now.given.limits  # (B,)
    return Candidates(
        parents=_pick(parents, place),
        tokens=tokens,
        log_probabilities=best,
        ended=ops.logical_or(ops.equal(tokens, end_id), at_limit[:, None]),
    )


def _finish(
    now: BeamState, candidates: Candidates, alpha: float, bonuses: KerasTensor | None
) -> Hypotheses:
    """The W best of the finished hypotheses and of those of the W best that end with this step."""
    beam_size = now.tokens.shape[1]
    parents, tokens, log_probabilities, ended = (field[:, :beam_size] for field in candidates)
    length = now.index + 1
    new = ops.logical_and(ended, log_probabilities > NEVER / 2)
    new = ops.logical_and(new, ops.logical_not(now.done)[:, None])  # (B, W)
    scores = log_probabilities / length_penalty(length, alpha)
    if bonuses is not None:
        scores = scores + _pick(bonuses, parents)
    ending = Hypotheses(
        ids=set_column(_pick(now.ids, parents), now.index, tokens),
        lengths=ops.where(new, length, 0),
        log_probabilities=ops.where(new, log_probabilities, NEVER),
        scores=ops.where(new, scores, NEVER),
    )
    pool = Hypotheses(
        *(ops.concatenate(pair, axis=1) for pair in zip(now.finished, ending, strict=True))
    )
    _, rank = ops.top_k(pool.scores, beam_size)
    return Hypotheses(*(_pick(field, rank) for field in pool))


def _live_on(
    now: BeamState,
    candidates: Candidates,
    finished: Hypotheses,
    state: StepState,
    alpha: float,
    worst: int,
    early_stop: bool,
) -> BeamState:
    """Moves the W best that do not end on, and sees which sentences are done."""
    beam_size = now.tokens.shape[1]
    kept = ops.where(candidates.ended, 2 * NEVER, candidates.log_probabilities)
    log_probabilities, rank = ops.top_k(kept, beam_size)  # (B, W)
    parents = _pick(candidates.parents, rank)
    tokens = _pick(candidates.tokens, rank)

    complete = ops.all(finished.scores > NEVER / 2, axis=1)  # W are finished
    dead = log_probabilities[:, 0] < NEVER / 2  # none can go on
    done = ops.logical_or(complete, dead)
    if early_stop:
        # A live hypothesis can only lose probability, and gains most from the largest penalty.
        bound = log_probabilities[:, 0] / length_penalty(now.given.limits, alpha)
        done = ops.logical_or(done, finished.scores[:, worst] >= bound)
    own = tree.map_structure(lambda leaf: _pick(leaf, parents), state.own)
    return BeamState(
        index=now.index + 1,
        tokens=tokens,
        ids=set_column(_pick(now.ids, parents), now.index, tokens),
        log_probabilities=log_probabilities,
        finished=finished,
        done=ops.logical_or(now.done, done),
        state=StepState(own, state.shared),
        given=now.given,
    )


def _pick(values: KerasTensor, columns: KerasTensor) -> KerasTensor:
    """values[b, columns[b, w], ...]: (B, X, ...) by (B, W) to (B, W, ...)."""
    shape = ops.shape(values)
    rows = ops.arange(shape[0], dtype="int32")[:, None] * shape[1] + columns  # (B, W)
    flat = ops.reshape(values, (shape[0] * shape[1], *shape[2:]))
    return ops.take(flat, rows, axis=0)
