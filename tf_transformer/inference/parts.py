"""Texts that are divided into parts, and the predictions for the parts joined again, on tensors."""

from typing import NamedTuple

import tensorflow as tf

from tf_transformer.decoding import NEG_INF
from tf_transformer.text.graph_splitter import split_sentences


class Parts(NamedTuple):
    """The parts of texts (B,), one after another, with the white space around them."""

    texts: tf.Tensor  # string (P,)
    after: tf.Tensor  # string (P,): white space after each part; "" after the last of a text
    text_of: tf.Tensor  # int64 (P,): index of the text of each part, sorted
    counts: tf.Tensor  # int32 (B,): number of parts that are not empty


def parts_of(text: tf.Tensor, whole: tf.Tensor, language: str) -> Parts:
    """Divides strings (B,), valid UTF-8 without NUL, into sentences.

    The texts that bool (B,) `whole` marks stay whole.
    """
    pieces = split_sentences(tf.where(whole, "", text), language)  # "" is one part
    parts, text_of = pieces[:, ::2], pieces[:, ::2].value_rowids()
    texts = tf.where(tf.gather(whole, text_of), tf.gather(text, text_of), parts.flat_values)
    after = tf.concat([pieces[:, 1::2], tf.fill([parts.nrows(), 1], "")], axis=1)
    counts = tf.math.segment_sum(tf.cast(tf.not_equal(texts, ""), tf.int32), text_of)
    return Parts(texts, after.flat_values, text_of, counts)


def join_parts(parts: Parts, texts: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Joins predictions (P, N) for parts to the predictions (B, N) for texts, and their scores.

    The white space after a part follows its prediction. Without white space, as in Chinese, a space
    follows a prediction that does not end with a full-width mark. A part that has fewer predictions
    than others of the text gives its last one. A score is the mean over the parts that are not
    empty. Places without a prediction have "" and `NEG_INF`, as in `Predictions`.
    """
    places = tf.range(tf.shape(texts)[1])[None]
    available = scores > NEG_INF
    last = tf.math.count_nonzero(available, axis=1, dtype=tf.int32)[:, None] - 1
    chosen = tf.minimum(places, tf.maximum(last, 0))  # (P, N)
    texts, scores = (tf.gather(field, chosen, batch_dims=1) for field in (texts, scores))
    exists = tf.math.segment_max(tf.cast(available, tf.int32), parts.text_of) > 0  # (B, N)
    weights = tf.cast(tf.not_equal(parts.texts, ""), tf.float32)[:, None]
    total = tf.math.segment_sum(scores * weights, parts.text_of)
    mean = total / tf.cast(tf.maximum(parts.counts, 1), tf.float32)[:, None]
    return tf.where(exists, _with_spaces(parts, texts), ""), tf.where(exists, mean, NEG_INF)


def _with_spaces(parts: Parts, texts: tf.Tensor) -> tf.Tensor:
    """The texts (P, N) of parts with the white space after each, joined to string (B, N)."""
    is_last = tf.concat([tf.not_equal(parts.text_of[1:], parts.text_of[:-1]), [True]], axis=0)
    gets_space = (tf.equal(parts.after, "") & ~is_last)[:, None]
    gets_space &= tf.strings.regex_full_match(texts, r"(?s).*[^。！？｡」』”’）]")
    joined = tf.strings.join([texts, tf.where(gets_space, " ", parts.after[:, None])])
    return tf.strings.unsorted_segment_join(joined, parts.text_of, tf.size(parts.counts))
