"""Greedy search: the likeliest token at every position."""

from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.hypotheses import (
    Hypotheses,
    SpecialIds,
    State,
    StepFunction,
    length_penalty,
    next_log_probabilities,
    set_column,
)


class GreedyState(NamedTuple):
    """One hypothesis a sentence, grown a token at a time."""

    index: KerasTensor  # int32 scalar: tokens chosen so far
    tokens: KerasTensor  # int32 (B, 1): the newest token
    ids: KerasTensor  # int32 (B, L): all tokens, then padding
    lengths: KerasTensor  # int32 (B,)
    log_probabilities: KerasTensor  # float32 (B,)
    finished: KerasTensor  # bool (B,)
    state: State  # the step function's own, leaves (B, 1, ...)


def greedy_search(
    step: StepFunction,
    state: State,
    limits: KerasTensor,
    max_length: int | KerasTensor,
    special: SpecialIds,
    alpha: float = 0.6,
) -> Hypotheses:
    """Takes the likeliest next token until the end token, or the sentence's limit.

    Args:
        step: gives the logits of next tokens; see `StepFunction`.
        state: the step function's first state, leaves (B, 1, ...).
        limits: int32 tensor (B,): the most tokens a sentence may get, at least 1.
        max_length: the largest limit, L.
        special: ids of padding, start and end.
        alpha: exponent of the length penalty, which only scales the score here.

    Returns:
        `Hypotheses` with N = 1. Of equally likely tokens the one with the lowest id wins.
    """
    batch = ops.shape(limits)[0]

    def unfinished(now: GreedyState):
        return ops.logical_and(now.index < max_length, ops.logical_not(ops.all(now.finished)))

    def extend(now: GreedyState):
        logits, state = step(now.tokens, now.state, now.index)
        log_p = next_log_probabilities(logits, special)[:, 0]  # (B, V)
        live = ops.logical_not(now.finished)
        tokens = ops.where(live, ops.cast(ops.argmax(log_p, axis=-1), "int32"), special.pad)
        lengths = now.lengths + ops.cast(live, "int32")
        ended = ops.logical_or(ops.equal(tokens, special.end), lengths >= limits)
        return (
            GreedyState(
                index=now.index + 1,
                tokens=tokens[:, None],
                ids=set_column(now.ids, now.index, tokens),
                lengths=lengths,
                log_probabilities=now.log_probabilities
                + ops.where(live, ops.max(log_p, axis=-1), 0.0),
                finished=ops.logical_or(now.finished, ended),
                state=state,
            ),
        )

    start = GreedyState(
        index=ops.zeros((), "int32"),
        tokens=ops.full((batch, 1), special.start, "int32"),
        ids=ops.full((batch, max_length), special.pad, "int32"),
        lengths=ops.zeros((batch,), "int32"),
        log_probabilities=ops.zeros((batch,), "float32"),
        finished=ops.zeros((batch,), "bool"),
        state=state,
    )
    (end,) = ops.while_loop(unfinished, extend, (start,))
    return Hypotheses(
        ids=end.ids[:, None],
        lengths=end.lengths[:, None],
        log_probabilities=end.log_probabilities[:, None],
        scores=(end.log_probabilities / length_penalty(end.lengths, alpha))[:, None],
    )
