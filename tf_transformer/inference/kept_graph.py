"""Spans that stand in each translation as in its source, on tensors.

A model may lose, change or repeat a span. `KeptSpans` finds such translations, and puts each span
at its place; see `kept_places`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.inference.kept_places import Drawn, Located, matches, place, with_own_spaces
from tf_transformer.inference.text_graph import IDS, NUMBERS, STRINGS, Traced, lengths_of
from tf_transformer.losses.guided_alignment import of_head
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.models.ensemble import members_of
from tf_transformer.text.elements import is_paired, is_well_formed
from tf_transformer.text.graph_tokenizer import valid
from tf_transformer.text.kept_spans import (
    CLOSING,
    MOST_BYTES,
    MOST_SPANS,
    REPLACEMENT,
    WITHOUT_SPAN,
    pattern_of,
)
from tf_transformer.text.plain_elements import TOUCHING
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID


class KeptSpans:
    """Repairs translations so that each span of a text stands in its translation once.

    Guarantee: a span stands in the translation as often as in the text, byte for byte, as
    `kept_spans.spans` finds it. Tags that are well-formed in the text are well-formed in the
    translation. A text without spans keeps its translation.

    Args:
        keep: kinds of spans and patterns; see `kept_spans.pattern_of`.
        graph: the `SearchGraph` whose outputs are repaired.

    Raises:
        InputError: for a pattern that Python or RE2 cannot read.
    """

    def __init__(self, keep: Sequence[str], graph: Any = None):
        self._graph = graph
        self._repaired = Traced(self._repair_rows, STRINGS, IDS, STRINGS, NUMBERS, rare=True)
        self._repaired_alone = Traced(self._repair_alone, STRINGS, STRINGS, rare=True)
        self._without_tags = Traced(self._leave_out_tags, STRINGS, rare=True)
        self.pattern = pattern_of(keep)
        try:
            self.locate(tf.constant(""))
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"decode.keep has a pattern that RE2 cannot read: {error.message:.300}. RE2 has "
                "neither lookaround nor references to groups."
            ) from error

    def __call__(
        self,
        hypotheses: Hypotheses,
        text: tf.Tensor,
        outputs: tf.Tensor,
        prefix: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """The outputs (B, N) of the graph for the clean strings (B,), repaired.

        The tokens of a prefix, int32 (B, P), stay; spans that it repeats are repeated.
        """
        text_alone = self._graph.codec["source"].split_tag(text)[1]

        def repaired(wrong: tf.Tensor) -> tf.Tensor:
            row = wrong[:, 0]
            ids, given = tf.gather_nd(hypotheses.ids, wrong), tf.gather_nd(outputs, wrong)
            fixed = tf.zeros(tf.shape(row), tf.int32)
            if prefix is not None:
                is_text = tf.gather(prefix, row) > BOS_ID  # `open_words` adds the start id
                fixed = tf.math.count_nonzero(is_text, axis=1, dtype=tf.int32)
            return self._repaired(tf.gather(text, row), ids, given, fixed)

        # A missing hypothesis stays empty.
        return self._repair_wrong(text_alone, outputs, hypotheses.lengths > 0, repaired)

    def in_joined(self, text: tf.Tensor, outputs: tf.Tensor, may_change: tf.Tensor) -> tf.Tensor:
        """The outputs (B, N) for strings (B,) that were joined from those of parts, repaired.

        Each part has its spans already. Where bool (B, N) `may_change`, parts of spans that form
        others go, and tags nest over the whole text.
        """

        def repaired(wrong: tf.Tensor) -> tf.Tensor:
            return self._repaired_alone(tf.gather(text, wrong[:, 0]), tf.gather_nd(outputs, wrong))

        return self._repair_wrong(text, outputs, may_change, repaired)

    def _repair_wrong(
        self,
        text: tf.Tensor,
        outputs: tf.Tensor,
        may_change: tf.Tensor,
        repaired: Callable[[tf.Tensor], tf.Tensor],
    ) -> tf.Tensor:
        """Replaces the outputs (B, N) that have other spans than their strings (B,).

        `repaired` is a function of the places, int64 (R, 2), of these outputs to new ones (R,).
        """
        wanted = self.joined_spans(text)
        places = tf.where(tf.not_equal(wanted, "")[:, None] & may_change)

        def check() -> tf.Tensor:
            given = self.joined_spans(tf.gather_nd(outputs, places))
            touching = tf.strings.regex_full_match(
                tf.gather(text, places[:, 0]), f"(?s).*{TOUCHING}.*"
            )
            is_wrong = tf.not_equal(tf.gather(wanted, places[:, 0]), given) | touching
            wrong = tf.boolean_mask(places, is_wrong)
            return tf.cond(tf.size(wrong) > 0, lambda: replace(wrong), lambda: outputs)

        def replace(wrong: tf.Tensor) -> tf.Tensor:
            return tf.tensor_scatter_nd_update(outputs, wrong, repaired(wrong))

        return tf.cond(tf.size(places) > 0, check, lambda: outputs)

    def joined_spans(self, text: tf.Tensor) -> tf.Tensor:
        """The spans of strings (B,), each with a NUL behind it, as strings (B,)."""
        marked = tf.strings.regex_replace(text, self.pattern, REPLACEMENT) + "\0\0"
        pairs = tf.strings.regex_replace(marked, r"[^\x00]*\x00([^\x00]*)\x00", "\\1\0")
        return tf.strings.regex_replace(pairs, r"^\x00+|(\x00)\x00+", "\\1")

    def masked(self, text: tf.Tensor) -> tf.Tensor:
        """The strings (B,) with a control character in place of each byte of a span."""
        parts, is_span = self._divided(text)
        hidden = tf.strings.regex_replace(parts.flat_values, r"\C", "\x01")
        parts = parts.with_flat_values(tf.where(is_span, hidden, parts.flat_values))
        return tf.strings.reduce_join(parts, axis=1)

    def untagged(self, text: tf.Tensor) -> tf.Tensor:
        """The strings (B,) without tags that open or close an element with content.

        A space divides the contents of two elements that touch each other.
        """
        rows = tf.where(tf.strings.regex_full_match(text, "(?s).*<[A-Za-z/].*"))  # (R, 1)

        def shortened() -> tf.Tensor:
            without_tags = self._without_tags(tf.gather_nd(text, rows))
            return tf.tensor_scatter_nd_update(text, rows, without_tags)

        return tf.cond(tf.size(rows) > 0, shortened, lambda: text)

    def _leave_out_tags(self, text: tf.Tensor) -> tf.Tensor:
        """`untagged` of strings (R,), most of which have tags."""
        parts, is_span = self._divided(text)
        spans = parts.flat_values
        is_tag = is_span & is_paired(spans)
        closes = is_tag & tf.strings.regex_full_match(spans, CLOSING)
        ends = tf.pad(closes, [[1, 0]])[:-1] & tf.pad(is_tag & ~closes, [[0, 1]])[1:]
        spans = tf.where(is_tag, "", tf.where(ends & tf.equal(spans, ""), " ", spans))
        return tf.strings.reduce_join(parts.with_flat_values(spans), axis=1)

    def _divided(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The parts of strings (B,), string (B, None), and which of the values are spans."""
        parts = divide(text, self.pattern)
        is_span = tf.ragged.range(parts.row_lengths()).flat_values % 2 == 1
        return parts, is_span & tf.not_equal(parts.flat_values, "")

    def without_spans(self, text: tf.Tensor) -> tf.Tensor:
        """The strings (B,) without their spans."""
        return tf.strings.regex_replace(text, self.pattern, WITHOUT_SPAN)

    def locate(self, text: tf.Tensor) -> Located:
        """The spans of a string scalar."""
        parts = divide(text, self.pattern)
        stops = tf.cumsum(tf.strings.length(parts))
        is_span = (tf.range(tf.size(parts)) % 2 == 1) & tf.not_equal(parts, "")
        spans, stops = tf.boolean_mask(parts, is_span), tf.boolean_mask(stops, is_span)
        return Located(spans, stops - tf.strings.length(spans), stops)

    def _repair_rows(
        self, text: tf.Tensor, ids: tf.Tensor, outputs: tf.Tensor, fixed: tf.Tensor
    ) -> tf.Tensor:
        """Repairs the outputs (R,) with ids (R, T) for strings (R,); `fixed` (R,) tokens stay."""
        graph = self._graph
        ids = ids[:, : tf.reduce_max(token_counts(ids))]
        ends = ends_of_tokens(graph, ids, text)
        before_end = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1) == 0
        is_text = before_end & tf.not_equal(ids, PAD_ID)
        source = graph.encode(graph.hidden(text))[0].to_tensor(PAD_ID)
        weights = attention(graph.model, source, ids, graph.config)
        weights *= tf.cast(is_text, tf.float32)[..., None]
        tags, rests = graph.codec["source"].split_tag(text)
        fixed = tf.gather(ends, tf.minimum(fixed, tf.shape(ids)[1]), batch_dims=1)

        def repair(row: tuple[tf.Tensor, ...]) -> tf.Tensor:
            tag, rest, *drawn = row

            def count_tokens(starts: tf.Tensor) -> tf.Tensor:
                starts = graph.hidden(tf.strings.join([tag, starts]))
                counts = lengths_of(graph.encode(starts)[0]) - 1
                has_tag = tf.not_equal(tag + graph.config.default_tag, "")
                return tf.maximum(counts, tf.cast(has_tag, tf.int32))  # before an empty start, too

            return self.repair(rest, Drawn(*drawn), count_tokens)

        rows = (tags, rests, outputs, ends, weights, fixed)
        return tf.map_fn(repair, rows, fn_output_signature=tf.string)

    def repair(
        self, source: tf.Tensor, drawn: Drawn, count_tokens: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """Repairs an output for a string scalar. `count_tokens` counts the tokens of strings."""
        wanted, given = self.locate(source), self.locate(drawn.output)
        start = tf.strings.substr(drawn.output, 0, drawn.fixed)
        rest = tf.strings.substr(drawn.output, drawn.fixed, tf.strings.length(drawn.output))
        texts = divide(rest, self.pattern)[::2]
        apart = tf.where(tf.equal(start, ""), "", start + " ")  # 20 and %d would be a percentage

        def is_right(output: tf.Tensor) -> tf.Tensor:
            starts_right = tf.equal(tf.strings.substr(output, 0, drawn.fixed), start)
            return starts_right & holds(wanted.spans, self.locate(output).spans)

        def repaired() -> tf.Tensor:
            placed = valid(place(source, wanted, given, drawn, count_tokens))
            return tf.cond(is_right(placed), lambda: placed, spans_first)

        def spans_first() -> tf.Tensor:  # rarely: before all other text, or alone
            in_start = tf.reduce_any(matches(wanted.spans, self.locate(start).spans), axis=1)
            first = tf.concat([apart[None], tf.boolean_mask(wanted.spans, ~in_start)], 0)
            before_all = _with_spaces(tf.concat([first, texts], 0))
            return tf.where(is_right(before_all), before_all, _with_spaces(first))

        def in_order() -> tf.Tensor:
            return _with_spaces(tf.concat([apart[None], wanted.spans, texts], 0))

        def own_spaces(output: tf.Tensor) -> tf.Tensor:
            spaced = with_own_spaces(source, wanted, output, self.locate(output))
            return tf.cond(is_right(spaced), lambda: spaced, lambda: output)

        is_small = _is_small(source, wanted, given)
        result = tf.cond(
            holds(wanted.spans, given.spans),
            lambda: drawn.output,
            lambda: tf.cond(is_small, repaired, in_order),
        )
        return tf.cond(is_small, lambda: own_spaces(result), lambda: result)

    def _repair_alone(self, text: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """Repairs the outputs (R,) for strings (R,), whose spans are all there."""
        return tf.map_fn(
            lambda row: self._without_attention(*row),
            (text, outputs),
            fn_output_signature=tf.string,
        )

    def _without_attention(self, source: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
        """Repairs a string scalar whose spans are all there, if it is not long."""
        ends = tf.stack([0, tf.strings.length(output)])
        drawn = Drawn(output, ends, tf.zeros((1, 1)), tf.constant(0))
        return tf.cond(
            _is_small(source, self.locate(source), self.locate(output)),
            lambda: self.repair(source, drawn, lambda starts: tf.zeros(tf.shape(starts), tf.int32)),
            lambda: output,
        )


def _is_small(source: tf.Tensor, wanted: Located, given: Located) -> tf.Tensor:
    """Whether there is memory and time to place the spans: bool scalar."""
    count = tf.size(wanted.spans) + tf.size(given.spans)
    return (count <= MOST_SPANS) & (tf.strings.length(source) <= MOST_BYTES)


def divide(text: tf.Tensor, pattern: str) -> Any:
    """Divides strings (B,) or a string into text, span, text, ..., text: string (B, None), (P,).

    The pattern is that of `kept_spans.pattern_of`; see `kept_spans.divide`.
    """
    return tf.strings.split(tf.strings.regex_replace(text, pattern, REPLACEMENT), "\0")


def _with_spaces(parts: tf.Tensor) -> tf.Tensor:
    """The parts (P,) that are not empty, with a space between them: string scalar."""
    return tf.strings.reduce_join(tf.boolean_mask(parts, tf.not_equal(parts, "")), separator=" ")


def holds(wanted: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
    """Whether the spans of an output, (M,), keep those of its source, (K,): bool scalar."""
    index = tf.unique(tf.concat([wanted, given], 0)).idx
    change = tf.concat([tf.ones_like(wanted, tf.int32), -tf.ones_like(given, tf.int32)], 0)
    surplus = tf.math.unsorted_segment_sum(change, index, tf.size(index))
    is_kept = tf.reduce_all(tf.equal(tf.gather(surplus, index[: tf.size(wanted)]), 0))
    return is_kept & (~is_well_formed(wanted) | is_well_formed(given))


@own_settings()
def attention(model: Any, source: tf.Tensor, target: tf.Tensor, config: DecodeConfig) -> tf.Tensor:
    """The attention of targets (R, T) to the text of sources (R, S), float32 (R, T, S).

    It is that of the head which has learned alignments (`config.alignment_head`), or else the mean
    over layers and heads, of the first model of an ensemble. The end token gets most
    attention of words that need none, so it does not count, and the rows sum to 1 without it.
    """
    of_layers = members_of(model)[0].run((source, shift_right(target))).cross_attention
    head = config.alignment_head
    chosen = of_layers if head < 0 else [of_layers[config.alignment_layer]]
    weights = tf.add_n([tf.cast(of_head(w, head), tf.float32) for w in chosen])
    is_text = tf.not_equal(source, EOS_ID) & tf.not_equal(source, PAD_ID)
    weights *= tf.cast(is_text, tf.float32)[:, None]
    return tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=2, keepdims=True))


def ends_of_tokens(graph: Any, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
    """The bytes of an output after each number of its tokens, int32 (R, T + 1), for ids (R, T)."""
    longest = tf.shape(ids)[1]
    of_starts = tf.tile(ids[:, None], [1, longest + 1, 1])
    lengths = tf.minimum(tf.range(longest + 1), token_counts(ids)[:, None])
    zeros = tf.zeros(tf.shape(lengths))
    starts = Hypotheses(of_starts, lengths, zeros, zeros)
    sizes = tf.strings.length(graph.shown(graph.decode(starts, text), text))
    sizes = tf.minimum(sizes, sizes[:, -1:])
    return tf.transpose(tf.scan(tf.maximum, tf.transpose(sizes)))  # a half character adds nothing
