"""Phrases that each hypothesis contains: constrained beams.

The beam is divided among banks, as in Post and Vilar 2018 (https://aclanthology.org/N18-1119): a
bank holds the hypotheses that have met equally many phrases. Otherwise unlikely phrases would lose
to hypotheses without them in each step. Candidates are the best extensions of each hypothesis, and
its extension by the next token of a phrase. All of it is computed on tensors, as in Hu et al. 2019
(https://aclanthology.org/N19-1090). Three things differ:

- Banks count phrases, and whether a phrase has begun; in these papers they count tokens. Phrases of
  many tokens then fit into a beam of 4.
- The slots go to the best hypothesis of each bank, by log-probability, then to the second of each.
  The best of those that have met most phrases comes first.
- A candidate that leaves too few tokens for the phrases is excluded. So all phrases are met.

A phrase counts where its tokens follow one another and no word continues after them. The tokens of
a hypothesis belong to at most one phrase.
"""

from typing import NamedTuple

import numpy as np
from keras import KerasTensor, ops

from tf_transformer.decoding.constraints import Ranked, SoFar, is_free, log_normalizers, rank_next
from tf_transformer.decoding.problem import NEG_INF, SearchOptions, SpecialIds, pick
from tf_transformer.kernels.top_k import plain_top_k

SMALLEST_BEAM = 4  # of a search with terms
OTHERS = 32  # tokens that may follow a phrase, beside the likeliest ones
_BY_PROGRESS = 1e4  # more than any difference of log-probabilities


class Columns(NamedTuple):
    """What the columns of `Problem.terms` mean, each (B, C)."""

    ids: KerasTensor  # int32; the end id stands for any token that may follow a word
    phrase: KerasTensor  # int32: number of the phrase; -1 for padding
    is_start: KerasTensor  # bool: the first column of a form
    is_end: KerasTensor  # bool: the last column of a form
    counts: KerasTensor  # bool: of the first form of a phrase
    gain: KerasTensor  # int32: columns of the first form that are spared up to this column

    @classmethod
    def of(cls, terms: KerasTensor, special: SpecialIds) -> "Columns":
        """Reads terms, int32 (B, C)."""
        is_used, is_end = ops.not_equal(terms, special.pad), ops.equal(terms, special.end)
        after_end = ops.pad(is_end[:, :-1], [[0, 0], [1, 0]], constant_values=True)
        is_start = ops.logical_and(is_used, after_end)
        begins_text = ops.equal(terms, special.start)
        begins_phrase = ops.logical_and(is_start, ops.logical_not(begins_text))
        phrase = ops.where(is_used, _count(begins_phrase) - 1, -1)
        form = ops.where(is_used, _count(is_start), 0)
        same_form = ops.equal(form[:, :, None], form[:, None])  # (B, C, C)
        counts = ops.any(ops.logical_and(same_form, begins_phrase[:, None]), axis=2)
        same_phrase = ops.equal(phrase[:, :, None], phrase[:, None])
        size = ops.sum(ops.cast(ops.logical_and(same_phrase, counts[:, None]), "int32"), axis=2)
        places = ops.arange(ops.shape(terms)[1], dtype="int32")
        behind = ops.logical_and(same_form, places > places[:, None])
        gain = size - ops.sum(ops.cast(behind, "int32"), axis=2)
        return cls(terms, phrase, is_start, is_end, ops.logical_and(counts, is_used), gain)


def _count(marks: KerasTensor) -> KerasTensor:
    """The number of marks (B, C) up to each column."""
    return ops.cumsum(ops.cast(marks, "int32"), axis=1)


class Progress(NamedTuple):
    """How far hypotheses (B, W) are in the columns (B, C) of their phrases."""

    columns: Columns
    # bool (B, W, C): whether the newest tokens are those of the form up to this column
    reached: KerasTensor
    met: KerasTensor  # bool (B, W, C): whether the phrase of the column has been met
    # float32 (B, W): the log-probability, up to the first token of a phrase that has begun
    rank: KerasTensor

    @classmethod
    def start(cls, terms: KerasTensor, beam_size: int, special: SpecialIds) -> "Progress":
        """The progress of hypotheses that are the start id alone."""
        batch, size = ops.shape(terms)
        none = ops.zeros((batch, beam_size, size), "bool")
        first = ops.full((batch, beam_size), special.start, "int32")
        zeros = ops.zeros((batch, beam_size))
        return cls(Columns.of(terms, special), none, none, zeros).after(first, zeros > 0, zeros)

    def of(self, parents: KerasTensor) -> "Progress":
        """The progress of the hypotheses `parents`, int32 (B, K)."""
        fields = (pick(field, parents) for field in (self.reached, self.met, self.rank))
        return Progress(self.columns, *fields)

    @property
    def may_follow(self) -> KerasTensor:
        """The columns that the next token may reach, bool (B, W, C)."""
        before = ops.pad(self.reached[..., :-1], [[0, 0], [0, 0], [1, 0]], constant_values=False)
        opens = ops.logical_or(self.columns.is_start[:, None], before)
        return ops.logical_and(opens, ops.logical_not(self.met))

    def after(self, tokens: KerasTensor, ends_word: KerasTensor, totals: KerasTensor) -> "Progress":
        """The progress after tokens (B, W), which may follow a word where bool (B, W) `ends_word`.

        `totals`, float32 (B, W), are the log-probabilities with these tokens.

        A phrase is met when its end column is reached. Of several, this is the longest one, then
        the first one. Others that share its tokens begin again.
        """
        ids, phrase, is_start, is_end, _, gain = (field[:, None] for field in self.columns)
        equal = ops.where(is_end, ends_word[..., None], ops.equal(ids, tokens[..., None]))
        reached = ops.logical_and(self.may_follow, equal)
        ended = ops.logical_and(reached, is_end)
        any_ended = ops.any(ended, axis=2, keepdims=True)
        longest = ops.argmax(ops.where(ended, gain, -1), axis=2)[..., None]
        phrases = ops.broadcast_to(phrase, ops.shape(ended))
        is_met = ops.equal(phrase, ops.take_along_axis(phrases, longest, axis=2))
        met = ops.logical_or(self.met, ops.logical_and(any_ended, is_met))
        begun = ops.logical_and(is_start, ops.logical_not(met))
        kept = ops.logical_or(ops.logical_not(any_ended), begun)
        reached = ops.logical_and(reached, kept)
        goes_on = ops.any(ops.logical_and(reached, ops.logical_not(is_start)), axis=2)
        return self._replace(reached=reached, met=met, rank=ops.where(goes_on, self.rank, totals))

    @property
    def missing(self) -> KerasTensor:
        """The number of tokens that the phrases still need, with what follows each, (B, W)."""
        open_columns = ops.logical_and(self.columns.counts[:, None], ops.logical_not(self.met))
        spared = ops.max(ops.where(self.reached, self.columns.gain[:, None], 0), axis=2)
        return ops.sum(ops.cast(open_columns, "int32"), axis=2) - spared

    @property
    def bank(self) -> KerasTensor:
        """Twice the number of phrases that are met, and 1 if another one has begun: (B, W)."""
        one = ops.logical_and(self.columns.is_end, self.columns.counts)[:, None]
        met = ops.sum(ops.cast(ops.logical_and(one, self.met), "int32"), axis=2)
        return 2 * met + ops.cast(ops.any(self.reached, axis=2), "int32")


class Extensions(NamedTuple):
    """Extensions of the hypotheses of a sentence by one token, best first."""

    parents: KerasTensor  # int32 (B, K)
    tokens: KerasTensor  # int32 (B, K)
    log_probabilities: KerasTensor  # float32 (B, K), with those of the parents


def ends_of_words(options: SearchOptions, vocabulary_size: int) -> np.ndarray:
    """Which tokens may follow a word, bool (V,)."""
    tokens, special = np.arange(vocabulary_size), options.special
    ids = [special.end, *(options.constraints.word_ends or tokens)]
    return np.isin(tokens, ids) & ~np.isin(tokens, [special.pad, special.start])


def rank_with_terms(
    logits: KerasTensor,
    totals: KerasTensor,
    progress: Progress,
    so_far: SoFar,
    options: SearchOptions,
) -> Extensions:
    """The 2W best extensions of the hypotheses of a sentence, from all banks.

    The arguments are those of `rank_together`. The next token of a phrase is allowed even if it is
    excluded elsewhere.
    """
    beam_size, size = logits.shape[1:]
    ranked = rank_next(logits, beam_size + 1, so_far, options)
    ends_word = ops.convert_to_tensor(ends_of_words(options, size))
    token, value = _next_of_phrase(logits, ranked, progress, options)
    value = value - log_normalizers(logits, ranked, options)
    is_ranked = ops.logical_and(
        ops.equal(ranked.tokens, token[..., None]), ranked.log_probabilities > NEG_INF / 2
    )
    is_new = ops.logical_and(
        is_free(so_far, options.special)[:, None], ops.logical_not(ops.any(is_ranked, axis=2))
    )
    value = ops.where(is_new, value, NEG_INF)
    tokens = ops.concatenate([ranked.tokens, token[..., None]], axis=2)  # (B, W, k)
    values = ops.concatenate([ranked.log_probabilities, value[..., None]], axis=2)
    count = tokens.shape[1] * tokens.shape[2]
    tokens = ops.reshape(tokens, (-1, count))
    values = ops.reshape(values + totals[..., None], (-1, count))
    parents = ops.arange(count, dtype="int32") // (count // beam_size)
    parents = ops.broadcast_to(parents, ops.shape(tokens))
    after = progress.of(parents).after(tokens, ops.take(ends_word, tokens, axis=0), values)
    most = so_far.problem.limits[:, None] - so_far.index - 1
    most = ops.where(ops.equal(tokens, options.special.end), 0, most)
    values = ops.where(after.missing <= most, values, NEG_INF)
    ranks = ops.where(values > NEG_INF / 2, after.rank, 2 * NEG_INF)
    order = _in_turns(ranks, after.bank, 2 * beam_size)
    return Extensions(*(pick(field, order) for field in (parents, tokens, values)))


def _next_of_phrase(
    logits: KerasTensor, ranked: Ranked, progress: Progress, options: SearchOptions
) -> tuple[KerasTensor, KerasTensor]:
    """The next token of a phrase for each hypothesis, (B, W), and its logit.

    A phrase that has begun goes on. Otherwise, the phrase with the likeliest first token begins.
    Behind a phrase comes the likeliest token that may follow a word, among the ranked tokens and a
    few others, so that there is one.
    """
    columns, end_id = progress.columns, options.special.end
    end = ops.full(ops.shape(progress.rank), end_id, "int32")
    at_end = progress.after(end, ops.equal(end, end_id), progress.rank)
    may_end = ops.equal(at_end.missing, 0)[..., None]
    ends_word = ends_of_words(options, logits.shape[-1])
    others = np.setdiff1d(np.flatnonzero(ends_word), [end_id])[:OTHERS].astype("int32")
    shape = (*ops.shape(end), len(others))
    tokens = ops.concatenate([ranked.tokens, ops.broadcast_to(others, shape)], axis=2)
    values = ops.take_along_axis(ops.cast(logits, "float32"), tokens, axis=2)
    follows = ops.take(ops.convert_to_tensor(ends_word), tokens, axis=0)
    follows = ops.logical_and(follows, ops.logical_or(ops.not_equal(tokens, end_id), may_end))
    is_allowed = ops.pad(
        ranked.log_probabilities > NEG_INF / 2,
        [[0, 0], [0, 0], [0, len(others)]],
        constant_values=True,
    )
    follows = ops.logical_and(follows, is_allowed)
    best = ops.argmax(ops.where(follows, values, NEG_INF), axis=2)[..., None]
    following = ops.take_along_axis(tokens, best, axis=2)

    ids = ops.where(columns.is_end[:, None], following, columns.ids[:, None])  # (B, W, C)
    values = ops.take_along_axis(ops.cast(logits, "float32"), ids, axis=2)
    further = ops.where(columns.is_start[:, None], 0, columns.gain[:, None])
    key = values + _BY_PROGRESS * ops.cast(further, "float32")
    possible = ops.logical_and(progress.may_follow, ops.not_equal(ids, options.special.start))
    best = ops.argmax(ops.where(possible, key, 2 * NEG_INF), axis=2)[..., None]
    ids, values = (
        ops.take_along_axis(field, best, axis=2)[..., 0]
        for field in (ids, ops.where(possible, values, NEG_INF))
    )
    return ids, values


def _in_turns(values: KerasTensor, bank: KerasTensor, count: int) -> KerasTensor:
    """The order of extensions (B, K): `count` of them, int32 (B, count).

    The best of the highest bank comes first, then the best of each bank, then the second of each.
    """
    size = values.shape[1]
    values, order = plain_top_k(values, size)
    bank = ops.where(values > NEG_INF / 2, pick(bank, order), -1)
    places = ops.arange(size, dtype="int32")
    same = ops.equal(bank[:, :, None], bank[:, None])
    before = ops.logical_and(same, places < places[:, None])  # (B, K, K)
    turn = ops.sum(ops.cast(before, "int32"), axis=2)
    is_highest = ops.equal(bank, ops.max(bank, axis=1, keepdims=True))
    turn = ops.where(ops.logical_and(is_highest, ops.equal(turn, 0)), -1, turn)
    turn = ops.where(bank < 0, size, turn)
    _, ranks = plain_top_k(ops.cast(-(turn * size + places), "float32"), count)
    return pick(order, ranks)
