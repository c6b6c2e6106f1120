"""Emoji in place of spans, on tensors: the model reads and writes emoji, the user sees spans."""

from collections.abc import Sequence

import tensorflow as tf

from tf_transformer.inference.kept_graph import divide
from tf_transformer.text.kept_spans import WITHOUT_SPAN, pattern_of
from tf_transformer.text.span_symbols import (
    BEFORE_WORD,
    JOIN,
    SYMBOL,
    SYMBOLS,
    has_tags,
    patterns_of,
)

_ONLY_SYMBOLS = pattern_of([SYMBOL])


class SpanSymbols:
    """Hides spans from a model that copies emoji better than other spans.

    Tags of elements with content are hidden before; see `KeptSpans.untagged`.

    Args:
        keep: kinds of spans and patterns; see `kept_spans.pattern_of`.
    """

    def __init__(self, keep: Sequence[str]):
        self._has_tags = has_tags(keep)
        self._pattern, self._joined_pattern = patterns_of(tuple(keep))

    def hide(self, text: tf.Tensor) -> tf.Tensor:
        """Strings (B,) with symbols in place of their spans."""
        rest = tf.strings.regex_replace(text, self._pattern, WITHOUT_SPAN)
        rows = tf.where(tf.not_equal(text, rest))  # (R, 1)
        parts, is_span = self._divided(tf.gather_nd(text, rows))  # (R, P)
        number = tf.cumsum(tf.cast(is_span, tf.int32), axis=1) - 1
        symbols = tf.gather(SYMBOLS, tf.clip_by_value(number, 0, len(SYMBOLS) - 1))
        after = tf.where(tf.strings.regex_full_match(parts, f"(?s).*{JOIN}"), " ", "")
        is_hidden = is_span & (number < len(SYMBOLS))
        parts = tf.where(is_hidden, tf.strings.join([symbols, after]), parts)
        hidden = tf.strings.regex_replace(tf.strings.reduce_join(parts, axis=1), JOIN, "")
        return tf.tensor_scatter_nd_update(text, rows, hidden)

    def show(self, outputs: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Strings (B, N) with the spans of strings (B,) in place of symbols.

        Of a string with spans, symbols that stand for none go.
        """
        has_symbols = tf.strings.regex_full_match(outputs, f"(?s).*{SYMBOL}.*")
        rows = tf.where(tf.reduce_any(has_symbols, axis=1))  # (R, 1)
        of_rows = tf.gather_nd(outputs, rows)  # (R, N)
        spans = tf.ragged.boolean_mask(*self._divided(tf.gather_nd(text, rows)))
        spans = spans.to_tensor("", shape=(None, len(SYMBOLS)))  # (R, K)
        parts = divide(tf.reshape(of_rows, [-1]), _ONLY_SYMBOLS).to_tensor("")  # (R·N, P)
        parts = tf.reshape(parts, tf.concat([tf.shape(of_rows), tf.shape(parts)[1:]], 0))
        is_symbol = tf.equal(parts[..., None], SYMBOLS)  # (R, N, P, K)
        shown = tf.gather(spans, tf.argmax(tf.cast(is_symbol, tf.int32), axis=3), batch_dims=1)
        parts = tf.where(tf.reduce_any(is_symbol, 3), shown, parts)
        shown = tf.strings.regex_replace(tf.strings.reduce_join(parts, axis=2), f" ?{JOIN} ?", "")
        shown = tf.where(
            tf.equal(spans[:, :1], ""), of_rows, shown
        )  # emoji of a text without spans
        return tf.tensor_scatter_nd_update(outputs, rows, shown)

    def _divided(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The parts (R, P) of strings (R,), and which of them are spans, bool (R, P)."""
        text = tf.strings.regex_replace(text, JOIN, "")
        if self._has_tags:
            text = tf.strings.regex_replace(text, BEFORE_WORD, rf"\1{JOIN}\2")
        parts = divide(text, self._joined_pattern).to_tensor("")
        is_span = (tf.range(tf.shape(parts)[1]) % 2 == 1) & tf.not_equal(parts, "")
        return parts, is_span
