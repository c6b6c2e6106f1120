"""The rules for valid sequences of actions.

`State` summarizes the actions so far. `allowed` says which kinds of action may come next. Their
fields may be Python numbers, arrays or tensors, so the search and the repair of free output share
the rules. After an allowed action, the tree can always be completed within the limit.
"""

from typing import Any, NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.problem import NEG_INF
from tf_transformer.parsing.linearization import CLOSE, END, OPEN, WORD, Actions

START = -1  # the kind of the last action if there is none
# These limits end unary chains. Trees of the WSJ open at most 6 brackets in a row, and have at most
# 3 unary brackets in a chain.
MAX_OPENED = 8  # brackets opened in a row, in `brackets`
MAX_UNARY = 4  # unary brackets in a row, in `in_order`
UNLIMITED = 2**30


class State(NamedTuple):
    """A summary of the actions so far. The rules for the next action depend on it."""

    words: Any  # number of `WORD` actions so far
    depth: Any  # number of open brackets
    last: Any  # kind of the last action
    run: Any  # length of the run of `OPEN` at the end; in `in_order`, of unary brackets


class Allowed(NamedTuple):
    """For each kind of action, whether the next action may have it."""

    word: Any
    open: Any
    close: Any
    end: Any


FIRST = State(0, 0, START, 0)


def allowed(state: State, words: Any, room: Any, in_order: bool) -> Allowed:
    """Says which kinds of action may come next.

    `words` is the number of words of the sentence, and `room` the number of actions up to the
    limit, with the end. The linearization is `in_order` or `brackets`.
    """
    depth, last = state.depth, state.last
    left = words - state.words
    started = last != START
    end = (depth == 0) & (last == CLOSE) & (left == 0)
    # A new bracket takes two actions. Then `left` words, all closing brackets and the end must fit.
    fits = room >= left + depth + 3
    if not in_order:
        inside = depth > 0
        return Allowed(
            word=inside & (left > 0),
            open=(inside | (last == START)) & (left > 0) & (state.run < MAX_OPENED) & fits,
            close=inside & (last != OPEN) & ((depth > 1) | (left == 0)),
            end=end,
        )
    in_run = state.run < 2 * MAX_UNARY
    has_child = (last == WORD) | (last == CLOSE)
    needed = (depth == 0) & ((left > 0) | (last == WORD))  # a root
    return Allowed(
        word=(left > 0) & ((depth > 0) | (last == START)),
        open=started & has_child & (needed | fits) & ((left > 0) | in_run),
        # If words are left, they need another bracket after the outermost one.
        close=(depth > 0)
        & ((last != OPEN) | in_run)
        & ((depth > 1) | (left == 0) | (room >= left + 4)),
        end=end,
    )


class TreeGrammar:
    """Restricts a search to sequences of actions that are trees over the words of a sentence.

    The sentence says which word comes next. So the action that takes the next word gets the sum of
    the probabilities of all actions that take words. Actions that are not allowed get `NEG_INF`.

    `decoding.problem.Grammar` describes the call. The actions so far must be valid, and the facts
    (B, 2 + S) come from `facts`.
    """

    def __init__(self, actions: Actions):
        self.actions = actions

    def facts(self, source: KerasTensor, limits: KerasTensor) -> KerasTensor:
        """The facts of sentences with source ids (B, S) and the largest numbers of actions (B,).

        They are int32 (B, 2 + S): the number of words, the limit, and the action that takes each
        word, padded with 0.
        """
        of_words = ops.take(ops.convert_to_tensor(self.actions.word_actions), source, axis=0)
        size, is_word = ops.shape(source)[1], of_words > 0
        positions = ops.arange(size, dtype="int32")
        words_first = ops.argsort(ops.where(is_word, positions, size + positions), axis=1)
        words = ops.take_along_axis(of_words, words_first, axis=1)
        counts = ops.sum(ops.cast(is_word, "int32"), axis=1)
        return ops.concatenate([ops.stack([counts, limits], axis=1), words], axis=1)

    def __call__(
        self, log_p: KerasTensor, ids: KerasTensor, index: KerasTensor, facts: KerasTensor
    ) -> KerasTensor:
        takes_word = ops.convert_to_tensor(self.actions.kinds == WORD)  # (V,)
        of_words = ops.where(takes_word, log_p, NEG_INF)
        of_word = ops.logsumexp(of_words, axis=-1, keepdims=True)
        of_tokens = ops.where(takes_word, of_word, log_p)
        return ops.where(self.allowed_next(ids, index, facts), of_tokens, NEG_INF)

    def allowed_next(self, ids: KerasTensor, index: KerasTensor, facts: KerasTensor) -> KerasTensor:
        """Says which ids may come next: bool (B, W, V). The class describes the arguments."""
        table = ops.convert_to_tensor(self.actions.kinds)  # (V,)
        positions = ops.arange(ops.shape(ids)[2], dtype="int32")
        kinds = ops.where(positions < index, ops.take(table, ids, axis=0), START)  # (B, W, L)
        depths = ops.cumsum(_count(kinds, OPEN) - _count(kinds, CLOSE), axis=2)
        state = State(
            words=ops.sum(_count(kinds, WORD), axis=2),
            depth=depths[:, :, -1],
            last=_at(kinds, index - 1, START),
            run=self._run(kinds, index),
        )
        words, room = facts[:, :1], facts[:, 1:2] - index  # (B, 1)
        next_kinds = allowed(state, words, room, self.actions.in_order)
        mask = ops.zeros((*ops.shape(state.words), table.shape[0]), "bool")
        for kind, is_allowed in ((OPEN, next_kinds.open), (END, next_kinds.end)):
            mask = mask | (is_allowed[..., None] & (table == kind))
        tokens = ops.arange(table.shape[0], dtype="int32")
        last_word = ops.shape(facts)[1] - 3
        following = ops.take_along_axis(facts[:, 2:], ops.minimum(state.words, last_word), axis=1)
        mask = mask | (next_kinds.word[..., None] & (tokens == following[..., None]))
        # The innermost open bracket is the last bracket that opened at the current depth.
        opens = (kinds == OPEN) & (depths == state.depth[..., None])
        innermost = _at(ids, ops.max(ops.where(opens, positions, -1), axis=2)[..., None], 0)
        closing = ops.take(ops.convert_to_tensor(self.actions.closings), innermost, axis=0)
        return mask | (next_kinds.close[..., None] & (tokens == closing[..., None]))

    def _run(self, kinds: KerasTensor, index: KerasTensor) -> KerasTensor:
        """Computes `State.run` from kinds (B, W, L)."""
        part = kinds == OPEN
        if self.actions.in_order:
            after_open = ops.roll(part, 1, axis=2)
            part = part | ((kinds == CLOSE) & after_open)
        positions = ops.arange(ops.shape(kinds)[2], dtype="int32")
        others = ops.where(part, -1, positions)
        return index - 1 - ops.max(ops.where(positions < index, others, -1), axis=2)


def _count(kinds: KerasTensor, kind: int) -> KerasTensor:
    return ops.cast(kinds == kind, "int32")


def _at(values: KerasTensor, position: KerasTensor, default: int) -> KerasTensor:
    """values[..., position], or `default` if there is no such position."""
    here = ops.arange(ops.shape(values)[-1], dtype="int32") == position
    return ops.sum(ops.where(here, values - default, 0), axis=-1) + default
