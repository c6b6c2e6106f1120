"""The terms that apply to texts as phrases of ids for the search, on tensors."""

from typing import Any

import tensorflow as tf

from tf_transformer.text.graph_terms import find_terms, parse_terms
from tf_transformer.text.graph_tokenizer import clean
from tf_transformer.text.normalization import class_of
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, UNK_ID
from tf_transformer.text.terms import word_class


def encode_terms(graph: Any, text: tf.Tensor, terms: tf.Tensor) -> tf.RaggedTensor:
    """The terms (B,) that apply to strings (B,) without tags, for a `SearchGraph`: `Problem.terms`.

    A term counts as often as its source stands in the text outside of kept spans. A term is left
    out if its target has a kept span or a character that the vocabulary does not have, and so are
    the last terms of a text, if all have more than `max_source_length` tokens.
    """
    kept, target = graph.kept_spans, graph.codec["target"]
    masked = kept.masked(text) if kept else text
    matches = find_terms(masked, parse_terms(terms), graph.config.split_language)
    ids = target.encode_inside(clean(matches.targets))
    possible = tf.reduce_all(tf.not_equal(ids, UNK_ID), axis=1) & (ids.row_lengths() > 0)
    if kept:
        possible &= tf.equal(kept.joined_spans(matches.targets), "")
    text_of, targets = (tf.boolean_mask(x, possible) for x in (matches.text_of, matches.targets))
    forms = _forms(target, targets, tf.ragged.boolean_mask(ids, possible))
    size, sizes = tf.shape(text, tf.int64)[0], forms.row_lengths()
    before = tf.cumsum(tf.math.unsorted_segment_sum(sizes, text_of, size), exclusive=True)
    fits = tf.cumsum(sizes) - tf.gather(before, text_of) <= graph.max_source_length
    forms = tf.ragged.boolean_mask(forms, fits)
    counts = tf.where(fits, sizes, 0)
    counts = tf.math.unsorted_segment_sum(counts, text_of, size)
    return tf.RaggedTensor.from_row_lengths(forms.flat_values, counts, validate=False)


def _forms(target: Any, texts: tf.Tensor, inside: tf.RaggedTensor) -> tf.RaggedTensor:
    """The ids of strings (N,) with the end id behind them, int32 (N, None).

    `inside` are the ids after other words. If they differ at the beginning of a text, where a word
    in small letters gets a capital, these ids follow after the start id.
    """
    first = tf.strings.upper(tf.strings.substr(texts, 0, 1, unit="UTF8_CHAR"), "utf-8")
    rest = tf.strings.substr(texts, 1, tf.int32.max, unit="UTF8_CHAR")
    lower_word = f"(?s)[{class_of(('Ll',))}]+(?:[^{word_class()}].*)?"
    is_lower = tf.strings.regex_full_match(texts, lower_word)
    begins = target.encode(clean(tf.where(is_lower, tf.strings.join([first, rest]), texts)))
    size = tf.shape(texts)[0]
    written = (
        tf.strings.reduce_join(tf.strings.as_string(x), axis=1, separator=" ")
        for x in (inside, begins)
    )
    differs = tf.not_equal(*written)
    start, end = (tf.fill([size, 1], token) for token in (BOS_ID, EOS_ID))
    other = tf.concat([start, begins, end], axis=1)
    other = tf.RaggedTensor.from_row_lengths(
        tf.boolean_mask(other.flat_values, tf.gather(differs, other.value_rowids())),
        tf.where(differs, other.row_lengths(), 0),
        validate=False,
    )
    return tf.concat([inside, end, other], axis=1)
