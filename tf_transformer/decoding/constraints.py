"""What may follow: tokens that are ruled out, forced, or made less likely.

Log-probabilities are normalised before anything is ruled out, so that a hypothesis' score stays
the model's own. The exception is the repetition penalty, which is meant to change scores.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.hypotheses import NEVER, SpecialIds
from tf_transformer.errors import InputError
from tf_transformer.kernels.top_k import Blocks, top_k

MAY_BE_RULED_OUT = 3  # tokens a hypothesis, after it is ranked: padding, start and end


@dataclass(frozen=True)
class Constraints:
    """Limits on what a search may choose.

    Attributes:
        min_lengths: int32 tensor (B,): the end token is ruled out until a hypothesis has this
            many tokens with it; no more than the sentence's limit takes effect.
        prefix: int32 tensor (B, P): tokens every hypothesis starts with, then padding. No other
            constraint holds for them, and their own log-probability counts.
        excluded: ids never chosen, besides padding and start.
        no_repeat_ngram_size: no sequence of so many tokens comes twice in a hypothesis
            (Paulus et al. 2017, section 2.5); 0: any may.
        repetition_penalty: log-probabilities of tokens that a hypothesis holds already are
            multiplied by this (after Keskar et al. 2019, section 4.1, who divide logits); 1: none.
            Scores include it.

    Raises:
        InputError: for a number out of range.
    """

    min_lengths: KerasTensor | None = None
    prefix: KerasTensor | None = None
    excluded: tuple[int, ...] = ()
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0

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
        self, min_lengths: KerasTensor | None, prefix: KerasTensor | None
    ) -> "Constraints":
        """The same constraints with these numbers for each sentence."""
        return replace(self, min_lengths=min_lengths, prefix=prefix)


class Ranked(NamedTuple):
    """The likeliest next tokens, likeliest first, among them some that are ruled out."""

    log_probabilities: KerasTensor  # float32 (..., k); `NEVER` for what is ruled out
    tokens: KerasTensor  # int32 (..., k)


def rank_next(
    logits: KerasTensor,
    count: int,
    ids: KerasTensor,
    index: KerasTensor,
    special: SpecialIds,
    constraints: Constraints,
    compiled: bool = False,
) -> Ranked:
    """At least the `count` likeliest next tokens of each hypothesis, of equals the lower id first.

    Log-probabilities are only computed for the ranked: `top_k` runs on logits, and the softmax
    gives one number a row.

    Args:
        logits: float tensor (B, W, V), W and V known.
        count: how many; at most V are given.
        ids: int32 tensor (B, W, L), tokens of the hypotheses so far.
        index: int32 scalar, how many tokens that is.
        special: ids of padding, start and end.
        constraints: what else is ruled out.
        compiled: whether a compiler will see this.

    Returns:
        fields (B, W, k).
    """
    logits = ops.cast(logits, "float32")
    count = min(count + MAY_BE_RULED_OUT, logits.shape[-1])
    if _changes_all(constraints):
        allowed = constrained(logits, ids, index, special, constraints)
        values, tokens = top_k(allowed, count, compiled)
    else:
        values, tokens = top_k(logits, count, compiled)
        highest = values[..., :1]  # (B, W, 1)
        values = values - highest - _log_of_sum(logits, highest, compiled)
    out = _ruled_out(tokens, index, special, constraints)
    return Ranked(ops.where(out, NEVER, values), tokens)


def rank_together(
    logits: KerasTensor,
    totals: KerasTensor,
    count: int,
    ids: KerasTensor,
    index: KerasTensor,
    special: SpecialIds,
    constraints: Constraints,
    compiled: bool = False,
) -> tuple[Ranked, KerasTensor]:
    """At least the `count` likeliest extensions of a sentence's hypotheses by one token.

    Of equal ones that of the first hypothesis comes first, then that by the lower id.

    Args:
        logits: float tensor (B, W, V), W and V known.
        totals: float32 tensor (B, W), log-probabilities of the hypotheses so far.
        count: how many; at most W·V are given.
        ids: int32 tensor (B, W, L), tokens of the hypotheses so far.
        index: int32 scalar, how many tokens that is.
        special: ids of padding, start and end.
        constraints: what else is ruled out.
        compiled: whether a compiler will see this.

    Returns:
        fields (B, k), totals included in the log-probabilities, and which hypothesis each
        extends, int32 (B, k).
    """
    logits = ops.cast(logits, "float32")
    _, beam_size, size = logits.shape
    count = min(count + MAY_BE_RULED_OUT * beam_size, beam_size * size)
    if _changes_all(constraints):
        allowed = constrained(logits, ids, index, special, constraints)
        values, places = Blocks.of(allowed, count).top_k(count, (totals,), compiled)
    else:
        blocks = Blocks.of(logits, count)
        highest = ops.max(blocks.maxima, axis=-1, keepdims=True)  # (B, W, 1)
        rest = totals - _log_of_sum(logits, highest, compiled)[..., 0]
        # The highest logit is taken away first: logits may be large, and what is left is not.
        values, places = blocks.top_k(count, (-highest[..., 0], rest), compiled)
    tokens = places % size
    out = _ruled_out(tokens[:, None], index, special, constraints)[:, 0]
    return Ranked(ops.where(out, NEVER, values), tokens), places // size


def _log_of_sum(logits: KerasTensor, highest: KerasTensor, compiled: bool) -> KerasTensor:
    """Log Σ exp(logit - highest) over the last axis, (B, W, 1)."""
    if compiled:  # into one pass over the logits
        return ops.log(ops.sum(ops.exp(logits - highest), axis=-1, keepdims=True))
    # The likeliest token's probability is one over that sum, and a softmax is one operation.
    return -ops.log(ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True))


def _ruled_out(tokens, index, special: SpecialIds, constraints: Constraints) -> KerasTensor:
    """Which of the ranked tokens (B, W, k) are padding, start or an end too early."""
    out = ops.logical_or(ops.equal(tokens, special.pad), ops.equal(tokens, special.start))
    if constraints.min_lengths is None:
        return out
    early = index + 1 < constraints.min_lengths  # (B,)
    if constraints.prefix is not None:
        early = ops.logical_and(early, _is_free(_forced(constraints.prefix, index), special))
    early = early[:, None, None]
    return ops.logical_or(out, ops.logical_and(ops.equal(tokens, special.end), early))


def _changes_all(constraints: Constraints) -> bool:
    """Whether any token's log-probability may change, not only those of special ids."""
    return bool(
        constraints.prefix is not None
        or constraints.excluded
        or constraints.no_repeat_ngram_size
        or constraints.repetition_penalty != 1
    )


def constrained(
    logits: KerasTensor,
    ids: KerasTensor,
    index: KerasTensor,
    special: SpecialIds,
    constraints: Constraints,
) -> KerasTensor:
    """Log-probabilities (B, W, V) of next tokens, `NEVER` for those that are ruled out."""
    free = log_p = ops.log_softmax(logits, axis=-1)
    tokens = ops.arange(log_p.shape[-1], dtype="int32")  # (V,)
    if constraints.repetition_penalty != 1:
        held = _mark(ids, ops.arange(ops.shape(ids)[2]) < index, log_p.shape[-1])
        free = ops.where(held, free * constraints.repetition_penalty, free)
    if constraints.no_repeat_ngram_size:
        repeats = _repeats(ids, index, constraints.no_repeat_ngram_size)  # (B, W, L)
        free = ops.where(_mark(ids, repeats, log_p.shape[-1]), NEVER, free)
    for token in constraints.excluded:
        free = ops.where(ops.equal(tokens, token), NEVER, free)
    if constraints.prefix is None:
        return free
    forced = _forced(constraints.prefix, index)[:, None, None]  # (B, 1, 1)
    only = ops.where(ops.equal(tokens, forced), log_p, NEVER)
    return ops.where(_is_free(forced, special), free, only)


def _forced(prefix: KerasTensor, index: KerasTensor) -> KerasTensor:
    """The token of each prefix at a position, (B,); -1 beyond the last column."""
    return _column(prefix + 1, index) - 1  # one more and one less, because `_column` gives 0 there


def _is_free(forced: KerasTensor, special: SpecialIds) -> KerasTensor:
    return ops.logical_or(ops.equal(forced, special.pad), forced < 0)


def _repeats(ids: KerasTensor, index: KerasTensor, size: int) -> KerasTensor:
    """Positions (B, W, L) whose token would end a second n-gram, were it chosen next.

    Those whose n - 1 predecessors are the newest n - 1 tokens.
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
    """ids[..., index], and 0 where there is no such column."""
    here = ops.equal(ops.arange(ops.shape(ids)[-1]), index)
    return ops.sum(ops.where(here, ids, 0), axis=-1)


def _mark(ids: KerasTensor, chosen: KerasTensor, vocabulary_size: int) -> KerasTensor:
    """Bool (B, W, V): the tokens of `ids` (B, W, L) at the positions that are `chosen`."""
    batch, beam, length = ops.shape(ids)
    rows = ops.arange(batch * beam, dtype="int32")[:, None] * vocabulary_size
    places = ops.reshape(rows + ops.reshape(ids, (-1, length)), (-1, 1))
    chosen = ops.broadcast_to(chosen, (batch, beam, length))
    counts = ops.scatter(
        places, ops.reshape(ops.cast(chosen, "int32"), (-1,)), (batch * beam * vocabulary_size,)
    )
    return ops.reshape(ops.greater(counts, 0), (batch, beam, vocabulary_size))
