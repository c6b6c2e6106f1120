"""The terms that apply to texts, on tensors: as phrases of ids for the search, and in the text."""

from typing import Any

import tensorflow as tf

from tf_transformer.text.graph_terms import Matches, find_terms, parse_terms
from tf_transformer.text.graph_tokenizer import clean
from tf_transformer.text.inline_terms import marked
from tf_transformer.text.normalization import class_of
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, UNK_ID
from tf_transformer.text.terms import word_class


def encode_terms(graph: Any, text: tf.Tensor, terms: tf.Tensor) -> tf.RaggedTensor:
    """The terms (B,) that apply to strings (B,) without tags, for a `SearchGraph`: `Problem.terms`.

    A term counts as often as its source stands in the text; see `_applying`. The last terms of a
    text are left out if all have more than `max_source_length` tokens.
    """
    target = graph.codec["target"]
    matches = _applying(graph, text, terms, target)
    forms = _forms(target, matches.targets, target.encode_inside(clean(matches.targets)))
    text_of, size, sizes = matches.text_of, tf.shape(text, tf.int64)[0], forms.row_lengths()
    before = tf.cumsum(tf.math.unsorted_segment_sum(sizes, text_of, size), exclusive=True)
    fits = tf.cumsum(sizes) - tf.gather(before, text_of) <= graph.max_source_length
    forms = tf.ragged.boolean_mask(forms, fits)
    counts = tf.where(fits, sizes, 0)
    counts = tf.math.unsorted_segment_sum(counts, text_of, size)
    return tf.RaggedTensor.from_row_lengths(forms.flat_values, counts, validate=False)


def with_terms(graph: Any, text: tf.Tensor, terms: tf.Tensor) -> tf.Tensor:
    """Strings (B,) in which the terms (B,) that apply have their translations; see `inline_terms`.

    A text that has more than `max_source_length` tokens with its terms stays as it is.
    """
    tag, rest = graph.codec["source"].split_tag(text)
    matches = _applying(graph, rest, terms, graph.codec["source"])
    text_of, starts, stops, targets = matches
    follows = tf.concat([[False], tf.equal(text_of[1:], text_of[:-1])], 0)[: tf.size(text_of)]
    before = tf.where(follows, tf.roll(stops, 1, 0), 0)
    texts = tf.gather(rest, text_of)
    phrases = tf.strings.substr(texts, starts, stops - starts)
    pieces = [tf.strings.substr(texts, before, starts - before), *marked(phrases, targets)]
    size = tf.size(text)
    start = tf.strings.unsorted_segment_join(tf.strings.join(pieces), text_of, size)
    last = tf.maximum(tf.math.unsorted_segment_max(stops, text_of, size), 0)
    end = tf.strings.substr(rest, last, tf.fill([size], tf.int32.max))
    tags = tf.where(tf.equal(tag, ""), "", tf.strings.join([tag, " "]))
    marked_text = tf.strings.join([tags, start, end])
    _, cut = graph.encode(graph.hidden(marked_text))
    return tf.where(cut | tf.equal(start, ""), text, marked_text)


def _applying(graph: Any, text: tf.Tensor, terms: tf.Tensor, tokenizer: Any) -> Matches:
    """Where terms (B,) apply to strings (B,) without tags, outside of kept spans.

    A term is left out if its translation has a kept span or a character that the tokenizer's
    vocabulary does not have.
    """
    kept = graph.kept_spans
    masked = kept.masked(text) if kept else text
    matches = find_terms(masked, parse_terms(terms), graph.config.split_language)
    ids = tokenizer.encode_inside(clean(matches.targets))
    possible = tf.reduce_all(tf.not_equal(ids, UNK_ID), axis=1) & (ids.row_lengths() > 0)
    if kept:
        possible &= tf.equal(kept.joined_spans(matches.targets), "")
    return Matches(*(tf.boolean_mask(field, possible) for field in matches))


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
