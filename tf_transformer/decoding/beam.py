"""Beam search with the paper's length penalty (paper section 6.1).

Each step extends the W live hypotheses of a sentence by every token and ranks the results by
log-probability. Of the W best, those that end (by the end token, or at the sentence's limit)
are finished: they leave the beam with their score and never change again. The W best that do
not end live on. A sentence is done when W hypotheses are finished, or when no live one can
still reach the N best, however it goes on.

Equal scores: the hypothesis finished earlier wins, then the one whose parent ranked higher,
then the one whose last token has the lower id.
"""

from typing import NamedTuple

from keras import KerasTensor, ops, tree

from tf_transformer.decoding.hypotheses import (
    NEVER,
    Hypotheses,
    SpecialIds,
    State,
    StepFunction,
    length_penalty,
    next_log_probabilities,
    set_column,
)
from tf_transformer.errors import InputError


class BeamState(NamedTuple):
    """All that changes from step to step."""

    index: KerasTensor  # int32 scalar: tokens chosen so far
    tokens: KerasTensor  # int32 (B, W): newest tokens of live hypotheses
    ids: KerasTensor  # int32 (B, W, L): all tokens of live hypotheses
    log_probabilities: KerasTensor  # float32 (B, W), live, best first
    finished: Hypotheses  # N = W, best first
    done: KerasTensor  # bool (B,): sentences whose result is final
    state: State  # the step function's own, leaves (B, W, ...)


class Candidates(NamedTuple):
    """The 2W best extensions of a sentence's live hypotheses, best first."""

    parents: KerasTensor  # int32 (B, 2W): which live hypothesis each extends
    tokens: KerasTensor  # int32 (B, 2W)
    log_probabilities: KerasTensor  # float32 (B, 2W)
    ended: KerasTensor  # bool (B, 2W)


def beam_search(
    step: StepFunction,
    state: State,
    limits: KerasTensor,
    max_length: int | KerasTensor,
    special: SpecialIds,
    beam_size: int = 4,
    alpha: float = 0.6,
    num_hypotheses: int = 1,
    early_stop: bool = True,
) -> Hypotheses:
    """The N best of the hypotheses that a beam of W finds.

    Args:
        step: gives the logits of next tokens; see `StepFunction`.
        state: the step function's first state, leaves (B, W, ...), all W rows alike.
        limits: int32 tensor (B,): the most tokens a sentence may get, at least 1.
        max_length: the largest limit, L.
        special: ids of padding, start and end.
        beam_size: live hypotheses a sentence, W.
        alpha: exponent of the length penalty, not negative.
        num_hypotheses: how many to return, N <= W.
        early_stop: leave a sentence when nothing can improve. Results are the same without.

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

    def unfinished(now: BeamState):
        return ops.logical_and(now.index < max_length, ops.logical_not(ops.all(now.done)))

    def extend(now: BeamState):
        logits, state = step(now.tokens, now.state, now.index)
        candidates = _candidates(now, next_log_probabilities(logits, special), limits, special.end)
        return (_select(now, candidates, state, limits, alpha, num_hypotheses, early_stop),)

    start = _start(state, ops.shape(limits)[0], beam_size, max_length, special)
    (end,) = ops.while_loop(unfinished, extend, (start,))
    return Hypotheses(*(field[:, :num_hypotheses] for field in end.finished))


def _start(state: State, batch, beam_size: int, max_length, special: SpecialIds) -> BeamState:
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
    )


def _candidates(now: BeamState, log_p: KerasTensor, limits, end_id: int) -> Candidates:
    """Ranks all extensions (B, W·V) and keeps 2W, of which at least W do not end by themselves.

    A live hypothesis has one extension by the end token, so at most W of the 2W are those.
    """
    beam_size, vocabulary_size = log_p.shape[1], log_p.shape[2]
    totals = now.log_probabilities[:, :, None] + log_p  # (B, W, V)
    flat = ops.reshape(totals, (-1, beam_size * vocabulary_size))
    best, position = ops.top_k(flat, 2 * beam_size)  # (B, 2W)
    tokens = ops.cast(position % vocabulary_size, "int32")
    at_limit = now.index + 1 >= limits  # (B,)
    return Candidates(
        parents=ops.cast(position // vocabulary_size, "int32"),
        tokens=tokens,
        log_probabilities=best,
        ended=ops.logical_or(ops.equal(tokens, end_id), at_limit[:, None]),
    )


def _select(
    now: BeamState,
    candidates: Candidates,
    state: State,
    limits: KerasTensor,
    alpha: float,
    num_hypotheses: int,
    early_stop: bool,
) -> BeamState:
    """Moves ended candidates among the W best to the finished, and the W best others on."""
    beam_size = now.tokens.shape[1]
    finished = _finish(now, candidates, alpha)
    kept = ops.where(candidates.ended, 2 * NEVER, candidates.log_probabilities)
    log_probabilities, rank = ops.top_k(kept, beam_size)  # (B, W)
    parents = _pick(candidates.parents, rank)
    tokens = _pick(candidates.tokens, rank)

    complete = ops.all(finished.scores > NEVER / 2, axis=1)  # W are finished
    # A live hypothesis can only lose probability, and gains most from the largest penalty.
    bound = log_probabilities[:, 0] / length_penalty(limits, alpha)
    hopeless = finished.scores[:, num_hypotheses - 1] >= bound
    dead = log_probabilities[:, 0] < NEVER / 2  # the limit ended all
    done = ops.logical_or(complete, dead)
    if early_stop:
        done = ops.logical_or(done, hopeless)
    return BeamState(
        index=now.index + 1,
        tokens=tokens,
        ids=set_column(_pick(now.ids, parents), now.index, tokens),
        log_probabilities=log_probabilities,
        finished=finished,
        done=ops.logical_or(now.done, done),
        state=tree.map_structure(lambda leaf: _pick(leaf, parents), state),
    )


def _finish(now: BeamState, candidates: Candidates, alpha: float) -> Hypotheses:
    """The W best of the finished hypotheses and of those that end with this step."""
    beam_size = now.tokens.shape[1]
    parents, tokens, log_probabilities, ended = (field[:, :beam_size] for field in candidates)
    length = now.index + 1
    new = ops.logical_and(ended, log_probabilities > NEVER / 2)
    new = ops.logical_and(new, ops.logical_not(now.done)[:, None])  # (B, W)
    ending = Hypotheses(
        ids=set_column(_pick(now.ids, parents), now.index, tokens),
        lengths=ops.where(new, length, 0),
        log_probabilities=ops.where(new, log_probabilities, NEVER),
        scores=ops.where(new, log_probabilities / length_penalty(length, alpha), NEVER),
    )
    pool = Hypotheses(
        *(ops.concatenate(pair, axis=1) for pair in zip(now.finished, ending, strict=True))
    )
    _, rank = ops.top_k(pool.scores, beam_size)
    return Hypotheses(*(_pick(field, rank) for field in pool))


def _pick(values: KerasTensor, columns: KerasTensor) -> KerasTensor:
    """values[b, columns[b, w], ...]: (B, X, ...) by (B, W) to (B, W, ...)."""
    shape = ops.shape(values)
    rows = ops.arange(shape[0], dtype="int32")[:, None] * shape[1] + columns  # (B, W)
    flat = ops.reshape(values, (shape[0] * shape[1], *shape[2:]))
    picked = ops.take(flat, ops.reshape(rows, (-1,)), axis=0)
    return ops.reshape(picked, (shape[0], columns.shape[1], *shape[2:]))
