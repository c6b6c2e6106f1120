"""Constraints on next tokens: tokens are excluded, forced, or made less likely.

Log-probabilities are normalized before tokens are excluded. So a hypothesis gets the score that the
model gives it. Only the repetition penalty changes scores, which is its purpose.
"""

from typing import NamedTuple

import numpy as np
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.decoding.problem import (
    NEG_INF,
    Constraints,
    Problem,
    SearchOptions,
    SpecialIds,
    is_off,
)

EXCLUDED_AFTER_RANKING = 3  # tokens of each hypothesis: padding, start and end


class SoFar(NamedTuple):
    """What constraints read of a search before a step."""

    ids: KerasTensor  # int32 (B, W, L): all tokens of the hypotheses
    index: KerasTensor  # int32 scalar: number of tokens chosen so far
    problem: Problem


class Ranked(NamedTuple):
    """The likeliest next tokens, likeliest first. Excluded tokens may be among them."""

    log_probabilities: KerasTensor  # float32 (..., k); `NEG_INF` for excluded tokens
    tokens: KerasTensor  # int32 (..., k)


def rank_next(logits: KerasTensor, count: int, so_far: SoFar, options: SearchOptions) -> Ranked:
    """Ranks the next tokens of each hypothesis. Of equally likely tokens, the lower id comes first.

    Logits are float (B, W, V), with known W and V. The fields of the result are (B, W, k), where k
    is at least `count`, the number of tokens that are needed, or V.
    """
    beam_size, size = logits.shape[1:]
    count = min(count + EXCLUDED_AFTER_RANKING, size)
    values, tokens = _rank(logits, None, count, so_far, options)
    values, tokens = (ops.reshape(field, (-1, beam_size, count)) for field in (values, tokens))
    excluded = _excluded(tokens, so_far, options.special)
    return Ranked(ops.where(excluded, NEG_INF, values), tokens)


def rank_together(
    logits: KerasTensor, totals: KerasTensor, count: int, so_far: SoFar, options: SearchOptions
) -> tuple[Ranked, KerasTensor]:
    """Ranks the extensions of all hypotheses of a sentence by one token.

    Of equally likely extensions, the earlier hypothesis comes first, then the lower id. The
    arguments are as in `rank_next`; `totals` (B, W) are the log-probabilities so far. The result is
    `Ranked` with fields (B, k), which include the totals, and the number of each extended
    hypothesis, int32 (B, k). Here, k is at least `count` or W·V.
    """
    beam_size, size = logits.shape[1:]
    count = min(count + EXCLUDED_AFTER_RANKING * beam_size, beam_size * size)
    values, places = _rank(logits, totals, count, so_far, options)
    tokens = places % size
    excluded = _excluded(tokens[:, None], so_far, options.special)[:, 0]
    return Ranked(ops.where(excluded, NEG_INF, values), tokens), places // size


def log_normalizers(logits: KerasTensor, ranked: Ranked, options: SearchOptions) -> KerasTensor:
    """Log Σ exp(logit) over the tokens, (B, W), for the result of `rank_next`."""
    logits = ops.cast(logits, "float32")
    if _changes_all(options.constraints):
        return ops.logsumexp(logits, axis=-1)
    values = ops.take_along_axis(logits, ranked.tokens, axis=2) - ranked.log_probabilities
    is_allowed = ranked.log_probabilities > NEG_INF / 2
    return ops.max(ops.where(is_allowed, values, NEG_INF), axis=2)


def _rank(
    logits: KerasTensor, totals: KerasTensor | None, k: int, so_far: SoFar, options: SearchOptions
) -> tuple[KerasTensor, KerasTensor]:
    """Ranks the tokens of all hypotheses, or of each without totals: values and indices (G, k)."""
    rows, size = logits.shape[1] if totals is not None else 1, logits.shape[-1]
    logits = ops.cast(logits, "float32")

    def among_all() -> tuple[KerasTensor, KerasTensor]:
        grouped = logits if logits.shape[1] == rows else ops.reshape(logits, (-1, rows, size))
        return tuple(kernels.current().rank_tokens(grouped, totals, k))

    def among_allowed() -> tuple[KerasTensor, KerasTensor]:
        allowed = constrained(logits, so_far, options)
        if totals is not None:
            allowed = allowed + totals[..., None]
        return tuple(kernels.current().top_k(ops.reshape(allowed, (-1, rows * size)), k))

    if _changes_all(options.constraints):
        return among_allowed()
    if is_off(so_far.problem.prefix):
        return among_all()
    is_forced = ops.logical_not(ops.all(is_free(so_far, options.special)))
    return ops.cond(is_forced, among_allowed, among_all)


def _excluded(tokens: KerasTensor, so_far: SoFar, special: SpecialIds) -> KerasTensor:
    """Which ranked tokens (B, W, k) are padding, start, or an end that comes too early."""
    problem, index = so_far.problem, so_far.index
    excluded = ops.logical_or(ops.equal(tokens, special.pad), ops.equal(tokens, special.start))
    if is_off(problem.min_lengths):
        return excluded
    early = index + 1 < problem.min_lengths  # (B,)
    if not is_off(problem.prefix):
        early = ops.logical_and(early, is_free(so_far, special))
    early = early[:, None, None]
    return ops.logical_or(excluded, ops.logical_and(ops.equal(tokens, special.end), early))


def _changes_all(constraints: Constraints) -> bool:
    """Whether the constraints may change the log-probability of any token."""
    return bool(
        constraints.excluded
        or constraints.no_repeat_ngram_size
        or constraints.repetition_penalty != 1
        or constraints.grammar is not None
    )


def constrained(logits: KerasTensor, so_far: SoFar, options: SearchOptions) -> KerasTensor:
    """Log-probabilities (B, W, V) of next tokens, from logits; `NEG_INF` for excluded tokens."""
    ids, index, problem = so_far
    constraints, special = options.constraints, options.special
    free = log_p = ops.log_softmax(logits, axis=-1)
    tokens = ops.arange(log_p.shape[-1], dtype="int32")  # (V,)
    if constraints.repetition_penalty != 1:
        repeated = _mark(ids, ops.arange(ops.shape(ids)[2]) < index, log_p.shape[-1])
        free = ops.where(repeated, free * constraints.repetition_penalty, free)
    if constraints.no_repeat_ngram_size:
        repeats = _repeats(ids, index, constraints.no_repeat_ngram_size)  # (B, W, L)
        free = ops.where(_mark(ids, repeats, log_p.shape[-1]), NEG_INF, free)
    for token in constraints.excluded:
        free = ops.where(ops.equal(tokens, token), NEG_INF, free)
    if constraints.grammar is not None:
        free = constraints.grammar(free, ids, index, problem.facts)
    if is_off(problem.prefix):
        return free
    forced = _forced(problem.prefix, index)[:, None, None]  # (B, 1, 1)
    only = ops.where(ops.equal(tokens, forced), log_p, NEG_INF)
    if constraints.word_starts:
        begins = np.isin(np.arange(log_p.shape[-1]), constraints.word_starts)  # (V,)
        new_word = ops.where(begins, free, NEG_INF)
        only = ops.where(ops.equal(forced, special.start), new_word, only)
    return ops.where(_is_free(forced, special), free, only)


def _forced(prefix: KerasTensor, index: KerasTensor) -> KerasTensor:
    """The token of each prefix at a position, (B,); -1 beyond the last column."""
    return _column(prefix + 1, index) - 1  # `_column` returns 0 beyond the last column


def is_free(so_far: SoFar, special: SpecialIds) -> KerasTensor:
    """Which sentences have a free choice of the next token, after their prefixes: bool (B,)."""
    prefix = so_far.problem.prefix
    if is_off(prefix):
        return ops.ones_like(so_far.problem.limits) > 0
    return _is_free(_forced(prefix, so_far.index), special)


def _is_free(forced: KerasTensor, special: SpecialIds) -> KerasTensor:
    return ops.logical_or(ops.equal(forced, special.pad), forced < 0)


def _repeats(ids: KerasTensor, index: KerasTensor, size: int) -> KerasTensor:
    """Positions (B, W, L) whose token would complete an n-gram a second time if it came next.

    The n - 1 tokens before such a position are equal to the newest n - 1 tokens.
    """
    length = ops.shape(ids)[2]
    positions = ops.arange(length, dtype="int32")
    same = ops.logical_and(positions >= size - 1, positions < index)  # (L,)
    same = ops.broadcast_to(same, ops.shape(ids))
    for back in range(1, size):
        newest = _column(ids, index - back)[..., None]  # (B, W, 1)
        before = ops.roll(ids, back, axis=2)
        same = ops.logical_and(same, ops.equal(before, newest))
    return same


def _column(ids: KerasTensor, index: KerasTensor) -> KerasTensor:
    """ids[..., index], or 0 if there is no such column."""
    here = ops.equal(ops.arange(ops.shape(ids)[-1]), index)
    return ops.sum(ops.where(here, ids, 0), axis=-1)


def _mark(ids: KerasTensor, chosen: KerasTensor, vocabulary_size: int) -> KerasTensor:
    """Marks the tokens of `ids` (B, W, L) at the `chosen` positions: bool (B, W, V)."""
    batch, beam, length = ops.shape(ids)
    rows = ops.arange(batch * beam, dtype="int32")[:, None] * vocabulary_size
    places = ops.reshape(rows + ops.reshape(ids, (-1, length)), (-1, 1))
    chosen = ops.broadcast_to(chosen, (batch, beam, length))
    counts = ops.scatter(
        places, ops.reshape(ops.cast(chosen, "int32"), (-1,)), (batch * beam * vocabulary_size,)
    )
    return ops.reshape(ops.greater(counts, 0), (batch, beam, vocabulary_size))
