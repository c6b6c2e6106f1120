"""Constraints on next tokens: tokens are excluded, forced, or made less likely.

Log-probabilities are normalized before tokens are excluded. So a hypothesis gets the score that the
model gives it. Only the repetition penalty changes scores, which is its purpose.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.decoding.hypotheses import NEG_INF, SpecialIds
from tf_transformer.errors import InputError

EXCLUDED_AFTER_RANKING = 3  # tokens of each hypothesis: padding, start and end

Grammar = Callable[[KerasTensor, KerasTensor, KerasTensor, KerasTensor], KerasTensor]
"""grammar(log-probabilities, ids, count, facts) -> log-probabilities.

It sets the log-probabilities (B, W, V) of ids that must not follow to `NEG_INF`. `ids` (B, W, L)
are the tokens so far, `count` is their number, and `facts` (B, X) are the grammar's facts of each
sentence.
"""


@dataclass(frozen=True)
class Constraints:
    """Limits on the choices of a search.

    Attributes:
        min_lengths: int32 tensor (B,): the smallest number of tokens, with the end token. A larger
            number than the sentence's limit counts as the limit.
        prefix: int32 tensor (B, P): the first tokens of every hypothesis, then padding. The other
            constraints do not apply to these tokens, but their log-probability counts. The start id
            allows any of `word_starts`.
        word_starts: ids of the pieces that begin a word.
        excluded: ids that are never chosen, in addition to padding and start.
        no_repeat_ngram_size: no sequence of this many tokens appears twice in a hypothesis
            (Paulus et al. 2017, section 2.5); 0: off.
        repetition_penalty: factor of the log-probabilities of tokens that the hypothesis already
            contains; 1: off. Scores include it. Keskar et al. 2019, section 4.1, divide logits
            instead.
        grammar: function that excludes tokens which must not follow; None: all may follow.
        facts: int32 tensor (B, X): the grammar's facts of each sentence.

    Raises:
        InputError: if a number is out of range.
    """

    min_lengths: KerasTensor | None = None
    prefix: KerasTensor | None = None
    word_starts: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    grammar: Grammar | None = None
    facts: KerasTensor | None = None

    def __post_init__(self):
        if self.no_repeat_ngram_size < 0:
            raise InputError(
                f"no_repeat_ngram_size must not be negative, got {self.no_repeat_ngram_size}."
            )
        if self.repetition_penalty < 1:
            raise InputError(
                "repetition_penalty must be at least 1 (less would reward repetition), "
                f"got {self.repetition_penalty}."
            )

    def for_sentences(
        self,
        min_lengths: KerasTensor | None,
        prefix: KerasTensor | None,
        facts: KerasTensor | None,
    ) -> "Constraints":
        """Returns these constraints with new values for each sentence."""
        return replace(self, min_lengths=min_lengths, prefix=prefix, facts=facts)


class Ranked(NamedTuple):
    """The likeliest next tokens, likeliest first. Excluded tokens may be among them."""

    log_probabilities: KerasTensor  # float32 (..., k); `NEG_INF` for excluded tokens
    tokens: KerasTensor  # int32 (..., k)


def rank_next(
    logits: KerasTensor,
    count: int,
    ids: KerasTensor,
    index: KerasTensor,
    special: SpecialIds,
    constraints: Constraints,
) -> Ranked:
    """Ranks the next tokens of each hypothesis. Of equally likely tokens, the lower id comes first.

    Args:
        logits: float tensor (B, W, V); W and V are known.
        count: number of tokens that are needed.
        ids: int32 tensor (B, W, L), tokens of the hypotheses so far.
        index: int32 scalar, number of tokens so far.
        special: ids of padding, start and end.
        constraints: other limits.

    Returns:
        `Ranked` with fields (B, W, k), where k is at least `count` or V.
    """
    beam_size, size = logits.shape[1:]
    count = min(count + EXCLUDED_AFTER_RANKING, size)
    values, tokens = _rank(logits, None, 1, count, ids, index, special, constraints)
    values, tokens = (ops.reshape(field, (-1, beam_size, count)) for field in (values, tokens))
    excluded = _excluded(tokens, index, special, constraints)
    return Ranked(ops.where(excluded, NEG_INF, values), tokens)


def rank_together(
    logits: KerasTensor,
    totals: KerasTensor,
    count: int,
    ids: KerasTensor,
    index: KerasTensor,
    special: SpecialIds,
    constraints: Constraints,
) -> tuple[Ranked, KerasTensor]:
    """Ranks the extensions of all hypotheses of a sentence by one token.

    Of equally likely extensions, the earlier hypothesis comes first, then the lower id.

    Args:
        logits: float tensor (B, W, V); W and V are known.
        totals: float32 tensor (B, W), log-probabilities of the hypotheses so far.
        count: number of extensions that are needed.
        ids: int32 tensor (B, W, L), tokens of the hypotheses so far.
        index: int32 scalar, number of tokens so far.
        special: ids of padding, start and end.
        constraints: other limits.

    Returns:
        `Ranked` with fields (B, k), where k is at least `count` or W·V, and the number of the
        extended hypothesis, int32 (B, k). Log-probabilities include the totals.
    """
    beam_size, size = logits.shape[1:]
    count = min(count + EXCLUDED_AFTER_RANKING * beam_size, beam_size * size)
    values, places = _rank(logits, totals, beam_size, count, ids, index, special, constraints)
    tokens = places % size
    excluded = _excluded(tokens[:, None], index, special, constraints)[:, 0]
    return Ranked(ops.where(excluded, NEG_INF, values), tokens), places // size


def _rank(logits, totals, rows: int, count: int, ids, index, special, constraints: Constraints):
    """Ranks the tokens of each group of `rows` hypotheses: values and indices (G, count)."""
    size = logits.shape[-1]
    logits = ops.cast(logits, "float32")
    if not _changes_all(constraints):
        grouped = logits if logits.shape[1] == rows else ops.reshape(logits, (-1, rows, size))
        return kernels.current().rank_tokens(grouped, totals, count)
    allowed = constrained(logits, ids, index, special, constraints)
    if totals is not None:
        allowed = allowed + totals[..., None]
    return kernels.current().top_k(ops.reshape(allowed, (-1, rows * size)), count)


def _excluded(tokens, index, special: SpecialIds, constraints: Constraints) -> KerasTensor:
    """Which ranked tokens (B, W, k) are padding, start, or an end that comes too early."""
    excluded = ops.logical_or(ops.equal(tokens, special.pad), ops.equal(tokens, special.start))
    if constraints.min_lengths is None:
        return excluded
    early = index + 1 < constraints.min_lengths  # (B,)
    if constraints.prefix is not None:
        early = ops.logical_and(early, _is_free(_forced(constraints.prefix, index), special))
    early = early[:, None, None]
    return ops.logical_or(excluded, ops.logical_and(ops.equal(tokens, special.end), early))


def _changes_all(constraints: Constraints) -> bool:
    """Whether the constraints may change the log-probability of any token."""
    return bool(
        constraints.prefix is not None
        or constraints.excluded
        or constraints.no_repeat_ngram_size
        or constraints.repetition_penalty != 1
        or constraints.grammar is not None
    )


def constrained(
    logits: KerasTensor,
    ids: KerasTensor,
    index: KerasTensor,
    special: SpecialIds,
    constraints: Constraints,
) -> KerasTensor:
    """Log-probabilities (B, W, V) of next tokens; `NEG_INF` for excluded tokens.

    Args:
        logits: float tensor (B, W, V).
        ids: int32 tensor (B, W, L), tokens of the hypotheses so far.
        index: int32 scalar, number of tokens so far.
        special: ids of padding, start and end.
        constraints: the limits.
    """
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
        free = constraints.grammar(free, ids, index, constraints.facts)
    if constraints.prefix is None:
        return free
    forced = _forced(constraints.prefix, index)[:, None, None]  # (B, 1, 1)
    only = ops.where(ops.equal(tokens, forced), log_p, NEG_INF)
    if constraints.word_starts:
        begins = np.isin(np.arange(log_p.shape[-1]), constraints.word_starts)  # (V,)
        new_word = ops.where(begins, free, NEG_INF)
        only = ops.where(ops.equal(forced, special.start), new_word, only)
    return ops.where(_is_free(forced, special), free, only)


def _forced(prefix: KerasTensor, index: KerasTensor) -> KerasTensor:
    """The token of each prefix at a position, (B,); -1 beyond the last column."""
    return _column(prefix + 1, index) - 1  # `_column` returns 0 beyond the last column


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
