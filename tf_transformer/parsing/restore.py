"""Makes trees over the words of a sentence from sequences of ids.

Ids that the grammar does not allow are left out. At the end, missing words are added and brackets
are closed. A valid sequence stays as it is.
"""

from typing import NamedTuple

import tensorflow as tf

from tf_transformer.decoding.problem import set_column
from tf_transformer.parsing.grammar import START, UNLIMITED, State, allowed
from tf_transformer.parsing.linearization import CLOSE, OPEN, OTHER, WORD, Actions
from tf_transformer.parsing.words import leaf_in_graph
from tf_transformer.text.special_ids import EOS_ID


class _Repair(NamedTuple):
    """The state of the loop that makes sequences valid; T is the largest length of a result."""

    index: tf.Tensor  # int32 scalar
    state: State  # int32 (R,)
    starts: tf.Tensor  # int32 (R, T): index where the newest part of each depth begins
    kinds: tf.Tensor  # int32 (R, T): `OTHER` at empty places
    tokens: tf.Tensor  # int32 (R, T)
    order: tf.Tensor  # int32 (R, T): sorting by it puts brackets before their first child


def restore(ids: tf.Tensor, words: tf.Tensor, actions: Actions) -> tf.Tensor:
    """Makes a tree from each row of any ids, int32 (R, L).

    Ids after the first end-of-sentence id do not count. The words of the sentences are strings
    (R, M), padded with "". Each tree is a line, string (R,); "" for a sentence without words.
    """
    valid = _valid(ids, words, actions)
    order = tf.argsort(valid.order, axis=1)
    kinds, tokens = (tf.gather(f, order, batch_dims=1) for f in (valid.kinds, valid.tokens))
    numbers = tf.cumsum(tf.cast(kinds == WORD, tf.int32), axis=1) - 1
    leaves = tf.gather(leaf_in_graph(words), tf.maximum(numbers, 0), batch_dims=1)  # (R, T)
    openings = tf.gather([f" ({label}" for label in actions.labels], tokens)
    closings = tf.where(kinds == CLOSE, ")", "")
    texts = tf.where(kinds == WORD, tf.strings.join([" ", leaves]), closings)
    texts = tf.where(kinds == OPEN, openings, texts)
    return tf.strings.strip(tf.strings.reduce_join(texts, axis=1))


def _after(state: State, kind: tf.Tensor, in_order: bool) -> State:
    """Makes the state after an action of each row. A row without an action keeps its state."""
    is_word, is_open, is_close = (tf.cast(kind == one, tf.int32) for one in (WORD, OPEN, CLOSE))
    in_run = kind == OPEN
    if in_order:
        in_run |= (kind == CLOSE) & (state.last == OPEN)
    after = State(
        words=state.words + is_word,
        depth=state.depth + is_open - is_close,
        last=kind,
        run=tf.where(in_run, state.run + 1, 0),
    )
    return State(*(tf.where(kind == OTHER, b, a) for b, a in zip(state, after, strict=True)))


def _valid(ids: tf.Tensor, words: tf.Tensor, actions: Actions) -> _Repair:
    counts = tf.reduce_sum(tf.cast(words != "", tf.int32), axis=1)
    rows, given = tf.unstack(tf.shape(ids))
    length = 2 * given + tf.shape(words)[1] + 2
    ended = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1) > 0
    ids = tf.where(ended, 0, ids)
    given_kinds = tf.gather(tf.constant(actions.kinds), ids)
    zero = tf.zeros((rows,), tf.int32)
    table = tf.zeros((rows, length), tf.int32)
    start = _Repair(
        tf.constant(0), State(zero, zero, zero + START, zero), table, table, table, table
    )

    def continues(now: _Repair) -> tf.Tensor:
        may = allowed(now.state, counts, UNLIMITED, actions.in_order)
        return (now.index < given) | tf.reduce_any(~may.end & (counts > 0))

    def extend(now: _Repair) -> tuple[_Repair]:
        state, index = now.state, now.index
        may = allowed(state, counts, UNLIMITED, actions.in_order)
        is_given, column = index < given, tf.minimum(index, given - 1)
        kind = given_kinds[:, column]
        fits = (kind == WORD) & may.word | (kind == OPEN) & may.open | (kind == CLOSE) & may.close
        missing = tf.where(may.word, WORD, tf.where(may.close, CLOSE, OPEN))
        kind = tf.where(is_given, kind, missing)
        kind = tf.where(tf.where(is_given, fits, ~may.end) & (counts > 0), kind, OTHER)
        token = tf.where(is_given, ids[:, column], actions.root)
        begin = tf.gather(now.starts, state.depth, batch_dims=1) if actions.in_order else index
        # If several brackets begin with the same word, the last one is the outermost.
        order = 2 * length * tf.where(kind == OPEN, begin, index)
        order += tf.where(kind == OPEN, length - index, length + 1)
        here = tf.range(length) == state.depth[:, None]
        starts = tf.where(here & (kind == WORD)[:, None], index, now.starts)
        after = _after(state, kind, actions.in_order)
        columns = (
            set_column(table, index, values)
            for table, values in zip(now[3:], (kind, token, order), strict=True)
        )
        return (_Repair(index + 1, after, starts, *columns),)

    (final,) = tf.while_loop(continues, extend, (start,))
    return final
