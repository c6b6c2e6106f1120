"""Texts that are divided into parts, and the predictions for the parts joined again, on tensors."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tf_transformer.decoding import NEG_INF
from tf_transformer.inference.text_graph import Traced
from tf_transformer.text.graph_splitter import marked, split_at, split_sentences
from tf_transformer.text.splitting import CLAUSE_MARKS, MARK, WORD_MARKS

CountTokens = Callable[[tf.Tensor], tf.Tensor]
"""A function of strings (R,) to the numbers of their tokens, int32 (R,)."""


class Parts(NamedTuple):
    """The parts of texts (B,), one after another, with the white space around them."""

    texts: tf.Tensor  # string (P,)
    after: tf.Tensor  # string (P,): white space after each part; "" after the last of a text
    text_of: tf.Tensor  # int64 (P,): index of the text of each part, sorted
    counts: tf.Tensor  # int32 (B,): number of parts that are not empty


def parts_of(text: tf.Tensor, whole: tf.Tensor, language: str, kept: str = "") -> Parts:
    """Divides strings (B,), valid UTF-8 without NUL, into sentences.

    The texts that bool (B,) `whole` marks stay whole, and so do the matches of the pattern `kept`.
    """
    pieces = split_sentences(tf.where(whole, "", text), language, kept)  # "" is one part
    parts, text_of = pieces[:, ::2], pieces[:, ::2].value_rowids()
    texts = tf.where(tf.gather(whole, text_of), tf.gather(text, text_of), parts.flat_values)
    after = tf.concat([pieces[:, 1::2], tf.fill([parts.nrows(), 1], "")], axis=1)
    return Parts(texts, after.flat_values, text_of, _counts(texts, text_of))


class LongParts:
    """Divides parts with more than `room` tokens at clauses, and clauses of many tokens at spaces.

    The new parts have at most `room` tokens, unless a word has more. Most have about half of
    `room`: this bound needs no loop over the clauses.

    Args:
        count_tokens: the numbers of tokens of strings.
        room: the most tokens of a part.
        kept: a pattern whose matches stay whole; see `parts_of`.
    """

    def __init__(self, count_tokens: CountTokens, room: int, kept: str = ""):
        self._count_tokens, self._room = count_tokens, room
        fields = [tf.TensorSpec([None], x) for x in (tf.string, tf.string, tf.int64, tf.int32)]
        self._in_groups = Traced(
            lambda *x: _in_groups(Parts(*x[:-1]), x[-1], count_tokens, max(1, room // 2), kept),
            *(*fields, tf.TensorSpec([None], tf.bool)),
            rare=True,
        )

    def __call__(self, parts: Parts, whole: tf.Tensor) -> Parts:
        """The parts of texts (B,), divided; texts that bool (B,) `whole` marks stay whole."""
        # A token stands for at least one byte; rules of punctuation may add some bytes.
        may_be_long = 2 * tf.strings.length(parts.texts) >= self._room
        may_be_long &= ~tf.gather(whole, parts.text_of)

        def divided() -> Parts:
            is_long = may_be_long & (self._count_tokens(parts.texts) > self._room)
            return tf.cond(
                tf.reduce_any(is_long), lambda: self._in_groups(*parts, is_long), lambda: parts
            )

        return tf.cond(tf.reduce_any(may_be_long), divided, lambda: parts)


def _in_groups(
    parts: Parts, is_long: tf.Tensor, count_tokens: CountTokens, size: int, kept: str
) -> Parts:
    """Divides long parts into groups of clauses and words with about `size` tokens each."""
    of_clauses = tf.where(is_long, marked(parts.texts, CLAUSE_MARKS, kept), parts.texts)
    clauses = tf.strings.split(of_clauses, MARK)
    texts, spaces = clauses[:, ::2], clauses[:, 1::2]
    is_long = tf.gather(is_long, texts.value_rowids()) & (count_tokens(texts.flat_values) > size)
    of_words = marked(texts.flat_values, WORD_MARKS, kept)
    of_words = texts.with_flat_values(tf.where(is_long, of_words, texts.flat_values))
    units = split_at(of_words, spaces, tf.fill(tf.shape(spaces.flat_values), True))
    texts, spaces = units[:, ::2], units[:, 1::2]
    counts = texts.with_flat_values(count_tokens(texts.flat_values))
    starts = tf.cumsum(counts.flat_values, exclusive=True)
    starts -= tf.gather(starts, tf.gather(texts.row_starts(), texts.value_rowids()))
    groups = texts.with_flat_values(starts // size)
    is_end = tf.not_equal(groups[:, 1:].flat_values, groups[:, :-1].flat_values)
    # A word of more tokens than `size` is a part of its own.
    is_end |= tf.maximum(counts[:, 1:].flat_values, counts[:, :-1].flat_values) > size
    pieces = split_at(texts, spaces, is_end)
    texts, part_of = pieces[:, ::2].flat_values, pieces[:, ::2].value_rowids()
    after = tf.concat([pieces[:, 1::2], parts.after[:, None]], axis=1)
    text_of = tf.gather(parts.text_of, part_of)
    return Parts(texts, after.flat_values, text_of, _counts(texts, text_of))


def _counts(texts: tf.Tensor, text_of: tf.Tensor) -> tf.Tensor:
    """The number of parts of each text that are not empty, int32 (B,)."""
    return tf.math.segment_sum(tf.cast(tf.not_equal(texts, ""), tf.int32), text_of)


def join_parts(
    parts: Parts, texts: tf.Tensor, scores: tf.Tensor, *words: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Joins predictions (P, N) for parts to the predictions (B, N) for texts, and their scores.

    The white space after a part follows its prediction. Without white space, as in Chinese, a space
    follows a prediction that does not end with a full-width mark. A part that has fewer predictions
    than others of the text gives its last one. A score is the mean over the parts that are not
    empty. Places without a prediction have "" and `NEG_INF`, as in `Predictions`. Strings (P, N) of
    `words` are joined by spaces.
    """
    places = tf.range(tf.shape(texts)[1])[None]
    available = scores > NEG_INF
    last = tf.math.count_nonzero(available, axis=1, dtype=tf.int32)[:, None] - 1
    chosen = tf.minimum(places, tf.maximum(last, 0))  # (P, N)
    fields = (texts, scores, *words)
    texts, scores, *strings = (tf.gather(field, chosen, batch_dims=1) for field in fields)
    exists = tf.math.segment_max(tf.cast(available, tf.int32), parts.text_of) > 0  # (B, N)
    weights = tf.cast(tf.not_equal(parts.texts, ""), tf.float32)[:, None]
    total = tf.math.segment_sum(scores * weights, parts.text_of)
    mean = total / tf.cast(tf.maximum(parts.counts, 1), tf.float32)[:, None]
    joined, size = [_with_spaces(parts, texts)], tf.size(parts.counts)
    for of_parts in strings:
        numbers = tf.strings.unsorted_segment_join(of_parts, parts.text_of, size, separator=" ")
        joined.append(tf.strings.regex_replace(tf.strings.strip(numbers), " +", " "))
    texts, *strings = (tf.where(exists, of_texts, "") for of_texts in joined)
    return texts, tf.where(exists, mean, NEG_INF), *strings


def whole_texts(parts: Parts) -> tf.Tensor:
    """The texts (B,) that were divided into parts."""
    texts = tf.strings.join([parts.texts, parts.after])
    return tf.strings.unsorted_segment_join(texts, parts.text_of, tf.size(parts.counts))


def _with_spaces(parts: Parts, texts: tf.Tensor) -> tf.Tensor:
    """The texts (P, N) of parts with the white space after each, joined to string (B, N)."""
    is_last = tf.concat([tf.not_equal(parts.text_of[1:], parts.text_of[:-1]), [True]], axis=0)
    gets_space = (tf.equal(parts.after, "") & ~is_last)[:, None]
    gets_space &= tf.strings.regex_full_match(texts, r"(?s).*[^。！？｡」』”’）]")
    joined = tf.strings.join([texts, tf.where(gets_space, " ", parts.after[:, None])])
    return tf.strings.unsorted_segment_join(joined, parts.text_of, tf.size(parts.counts))
