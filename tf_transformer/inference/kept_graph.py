"""Spans that stand in each translation as in its source, on tensors.

A model may lose, change or repeat a span. The repair finds such translations, and puts each span in
place of what the model made of it: the bytes whose attention goes to the span. If there are none,
the place is where the fewest words around the span change sides.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.inference.text_graph import lengths_of
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.text.graph_tokenizer import valid
from tf_transformer.text.kept_spans import ALONE, CLOSING, REPLACEMENT, TAG, TAG_NAME, pattern_of
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import EOS_ID, PAD_ID

ATTENDED = 0.5  # the share of attention with which a token is a copy of a span
_CLOSING = b" .,;:!?)"  # a space, and marks without a space before them
_IS_LETTER = [chr(code).isalnum() for code in range(0x80)]
_SPACE, _FIRST_WIDE, _LAST_WIDE = 0x20, 0xE3, 0xE9  # first bytes of U+3000 to U+9FFF


class Located(NamedTuple):
    """The spans of a string, in order."""

    spans: tf.Tensor  # string (K,)
    starts: tf.Tensor  # int32 (K,): index of the first byte
    stops: tf.Tensor  # int32 (K,): index after the last byte


class Drawn(NamedTuple):
    """What a model made of a text: the attention of each token of an output, and its bytes."""

    output: tf.Tensor  # string scalar
    ends: tf.Tensor  # int32 (T + 1,): bytes of the output after its first t tokens
    weights: tf.Tensor  # float32 (T, S): rows sum to 1, or to 0 after the last token of text


class KeptSpans:
    """Repairs translations so that each span of a text stands in its translation once.

    Guarantee: a span stands in the translation as often as in the text, byte for byte, as
    `kept_spans.spans` finds it. Tags that are well-formed in the text are well-formed in the
    translation. A text without spans keeps its translation.

    Args:
        keep: kinds of spans and patterns; see `kept_spans.pattern_of`.

    Raises:
        InputError: for a pattern that Python or RE2 cannot read.
    """

    def __init__(self, keep: Sequence[str]):
        self.pattern = pattern_of(keep)
        try:
            self.locate(tf.constant(""))
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"decode.keep has a pattern that RE2 cannot read: {error.message:.300}. RE2 has "
                "neither lookaround nor references to groups."
            ) from error

    def __call__(
        self, graph: Any, hypotheses: Hypotheses, text: tf.Tensor, outputs: tf.Tensor
    ) -> tf.Tensor:
        """The outputs (B, N) of a `SearchGraph` for the clean strings (B,), repaired."""
        shape = tf.shape(outputs)
        rows = tf.reshape(tf.repeat(text[:, None], shape[1], axis=1), [-1])  # (B·N,)
        flat = tf.reshape(outputs, [-1])
        wanted = self.joined_spans(graph.codec["source"].split_tag(rows)[1])
        differs = tf.not_equal(wanted, "") & tf.not_equal(wanted, self.joined_spans(flat))
        differs &= tf.reshape(hypotheses.lengths, [-1]) > 0  # a missing hypothesis stays empty

        def repair() -> tf.Tensor:
            places = tf.where(differs)  # (R, 1)
            chosen = tf.reshape(places, [-1])
            ids = tf.gather(tf.reshape(hypotheses.ids, [tf.size(flat), -1]), chosen)
            repaired = self._repaired(graph, tf.gather(rows, chosen), ids, tf.gather(flat, chosen))
            return tf.tensor_scatter_nd_update(flat, places, repaired)

        return tf.reshape(tf.cond(tf.reduce_any(differs), repair, lambda: flat), shape)

    def joined_spans(self, text: tf.Tensor) -> tf.Tensor:
        """The spans of strings (B,), each with a NUL behind it, as strings (B,)."""
        marked = tf.strings.regex_replace(text, self.pattern, REPLACEMENT) + "\0\0"
        pairs = tf.strings.regex_replace(marked, r"[^\x00]*\x00([^\x00]*)\x00", "\\1\0")
        return tf.strings.regex_replace(pairs, r"^\x00+|(\x00)\x00+", "\\1")

    def locate(self, text: tf.Tensor) -> Located:
        """The spans of a string scalar."""
        parts = divide(text[None], self.pattern).flat_values
        stops = tf.cumsum(tf.strings.length(parts))
        is_span = (tf.range(tf.size(parts)) % 2 == 1) & tf.not_equal(parts, "")
        spans, stops = tf.boolean_mask(parts, is_span), tf.boolean_mask(stops, is_span)
        return Located(spans, stops - tf.strings.length(spans), stops)

    def _repaired(
        self, graph: Any, text: tf.Tensor, ids: tf.Tensor, outputs: tf.Tensor
    ) -> tf.Tensor:
        """Repairs the outputs (R,) with ids (R, T) for strings (R,)."""
        ends = ends_of_tokens(graph, ids, text)
        before_end = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1) == 0
        is_text = before_end & tf.not_equal(ids, PAD_ID)
        source = graph.encode(text)[0].to_tensor(PAD_ID)
        weights = attention(graph.model, source, ids) * tf.cast(is_text, tf.float32)[..., None]
        tags, rests = graph.codec["source"].split_tag(text)

        def repair(row: tuple[tf.Tensor, ...]) -> tf.Tensor:
            tag, rest, *drawn = row

            def count_tokens(starts: tf.Tensor) -> tf.Tensor:
                return lengths_of(graph.encode(tf.strings.join([tag, starts]))[0]) - 1

            return self.repair(rest, Drawn(*drawn), count_tokens)

        return tf.map_fn(
            repair, (tags, rests, outputs, ends, weights), fn_output_signature=tf.string
        )

    def repair(
        self, source: tf.Tensor, drawn: Drawn, count_tokens: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """Repairs an output for a string scalar. `count_tokens` counts the tokens of strings."""
        wanted, given = self.locate(source), self.locate(drawn.output)
        placed = place(source, wanted, given, drawn, count_tokens)
        texts = divide(drawn.output[None], self.pattern).flat_values[::2]
        before_all = tf.strings.reduce_join(tf.concat([wanted.spans, texts], 0), separator=" ")
        result = tf.strings.reduce_join(wanted.spans, separator=" ")
        for better in (before_all, valid(placed), drawn.output):  # the first rarely has to do
            is_right = holds(wanted.spans, self.locate(better).spans)
            result = tf.where(is_right, better, result)
        return result


def divide(text: tf.Tensor, pattern: str) -> tf.RaggedTensor:
    """Divides strings (B,) into text, span, text, ..., text: string (B, None).

    The pattern is that of `kept_spans.pattern_of`; see `kept_spans.divide`.
    """
    return tf.strings.split(tf.strings.regex_replace(text, pattern, REPLACEMENT), "\0")


def holds(wanted: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
    """Whether the spans of an output, (M,), keep those of its source, (K,): bool scalar."""
    in_source = tf.reduce_sum(tf.cast(wanted[:, None] == wanted, tf.int32), axis=1)
    in_output = tf.reduce_sum(tf.cast(wanted[:, None] == given, tf.int32), axis=1)
    return tf.reduce_all(in_source == in_output) & (~is_well_formed(wanted) | is_well_formed(given))


def is_well_formed(spans: tf.Tensor) -> tf.Tensor:
    """Whether the tags among spans (K,) open and close as in XML: bool scalar."""
    tags = tf.boolean_mask(spans, _is_paired(spans))
    names = tf.strings.regex_replace(tags, TAG_NAME, r"\1")
    closes = tf.strings.regex_full_match(tags, CLOSING)
    step = tf.where(closes, -1, 1)
    level = tf.cumsum(step) + tf.cast(closes, tf.int32)  # equal for the two tags of an element
    place = tf.range(tf.size(tags))
    earlier = (level[:, None] == level) & (place < place[:, None])
    before = tf.reduce_max(tf.where(earlier, place, -1), axis=1)  # the previous tag of the level
    opened = tf.maximum(before, 0)
    is_pair = (before >= 0) & ~tf.gather(closes, opened) & (names == tf.gather(names, opened))
    return tf.reduce_all(is_pair | ~closes) & (tf.reduce_sum(step) == 0)


def _is_paired(spans: tf.Tensor) -> tf.Tensor:
    """Which spans (K,) are tags that open or close an element with content: bool (K,)."""
    is_tag = tf.strings.regex_full_match(spans, TAG)
    return is_tag & ~tf.strings.regex_full_match(spans, ALONE)


def place(
    source: tf.Tensor,
    wanted: Located,
    given: Located,
    drawn: Drawn,
    count_tokens: Callable[[tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """The output with each wanted span of the source at its place: string scalar."""
    output = tf.io.decode_raw(drawn.output, tf.uint8)  # (n,)
    size = tf.size(output)
    equal = _numbered(wanted.spans)[:, None] == _numbered(given.spans)  # (K, M)
    is_there, is_kept = tf.reduce_any(equal, axis=1), tf.reduce_any(equal, axis=0)
    in_given = _marks(given.starts, given.stops, size)  # (M, n)
    in_kept = tf.reduce_any(in_given & is_kept[:, None], axis=0)  # (n,)

    tokens = _token_ranges(source, wanted, count_tokens)
    attended = _attended_bytes(drawn, tokens, output) & ~in_kept & ~is_there[:, None]  # (K, n)
    touches = tf.reduce_any(attended[:, None] & in_given, axis=2) & ~is_kept  # (K, M)
    changed = tf.reduce_any(touches[..., None] & in_given, axis=1)  # (K, n)
    copies = attended | changed
    is_wrong = tf.reduce_any(wanted.spans[:, None] == given.spans, axis=0)
    is_wrong |= tf.strings.regex_full_match(given.spans, TAG)
    removed = _marks(_with_space(output, given), given.stops, size)
    removed = tf.reduce_any(removed & (is_wrong & ~is_kept)[:, None], axis=0)
    removed |= in_kept | tf.reduce_any(copies, axis=0)

    has_copy = tf.reduce_any(copies, axis=1)
    may_stand = _gaps(output) & ~_inside(given, size)  # (n + 1,)
    fitting = _fitting_gap(drawn, tokens, may_stand)  # (K,)
    byte = tf.range(size)
    first = tf.reduce_min(tf.where(copies, byte, size), axis=1)
    start = tf.where(has_copy, first, fitting)
    stop = tf.where(has_copy, tf.reduce_max(tf.where(copies, byte + 1, 0), axis=1), fitting)
    start, spans = _spaced(source, wanted, output, start, stop)
    own = tf.reduce_max(tf.where(equal, given.starts, 0), axis=1)
    start = tf.where(is_there, own, start)
    spans = tf.where(is_there, wanted.spans, spans)
    return _joined(drawn.output, removed, _nested(wanted.spans, start), spans)


def _numbered(spans: tf.Tensor) -> tf.Tensor:
    """The spans (K,), each with the number of equal spans before it, as strings (K,)."""
    place = tf.range(tf.size(spans))
    equal = (spans[:, None] == spans) & (place < place[:, None])
    number = tf.reduce_sum(tf.cast(equal, tf.int32), axis=1)
    return tf.strings.join([spans, tf.strings.as_string(number)], "\0")


def _marks(starts: tf.Tensor, stops: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Marks the places from starts (K,) up to stops (K,): bool (K, size)."""
    place = tf.range(size)
    return (place >= starts[:, None]) & (place < stops[:, None])


def _token_ranges(
    source: tf.Tensor, wanted: Located, count_tokens: Callable[[tf.Tensor], tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The first token of each span, and the token after it: two of int32 (K,)."""
    until = tf.concat([wanted.starts, wanted.stops], 0)
    sources = tf.repeat(source[None], tf.size(until))
    counts = count_tokens(tf.strings.substr(sources, tf.zeros_like(until), until))
    first, last = tf.split(counts, 2)
    return first, tf.maximum(last, first + 1)


def _attended_bytes(
    drawn: Drawn, tokens: tuple[tf.Tensor, tf.Tensor], output: tf.Tensor
) -> tf.Tensor:
    """The bytes (n,) that a model made of each span: bool (K, n), one run of bytes in each row."""
    size = tf.size(output)
    inside = tf.cast(_marks(*tokens, tf.shape(drawn.weights)[1]), tf.float32)
    share = tf.matmul(inside, drawn.weights, transpose_b=True)  # (K, T)
    last = tf.maximum(tf.shape(share)[1] - 1, 0)
    token = tf.minimum(tf.searchsorted(drawn.ends[1:], tf.range(size), side="right"), last)
    of_bytes = _mean_of_words(tf.gather(share, token, axis=1), output)  # (K, n)
    high = of_bytes > ATTENDED
    run = tf.cumsum(tf.cast(~high, tf.int32), axis=1)
    best = tf.where(high, of_bytes, 0.0)
    is_best = high & (best == tf.reduce_max(best, axis=1, keepdims=True))
    best_run = tf.reduce_min(tf.where(is_best, run, size + 1), axis=1, keepdims=True)
    return high & (run == best_run)


def _mean_of_words(values: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """The mean of values (K, n) over the letters and digits of each word of an output (n,).

    So no part of a word goes alone. Other characters keep their values.
    """
    codes = tf.cast(output, tf.int32)
    is_letter = (codes >= 0x80) | tf.gather(_IS_LETTER, tf.minimum(codes, 0x7F))
    continues = is_letter & tf.concat([[False], is_letter[:-1]], 0)
    word = tf.cumsum(tf.cast(~continues, tf.int32)) - 1
    means = tf.math.unsorted_segment_mean(tf.transpose(values), word, tf.size(output))
    return tf.transpose(tf.gather(means, word))


def _fitting_gap(
    drawn: Drawn, tokens: tuple[tf.Tensor, tf.Tensor], may_stand: tf.Tensor
) -> tf.Tensor:
    """The byte before which each span fits best: int32 (K,).

    The most attention of tokens before this place goes to the source before the span, and the most
    attention of later tokens goes to the source behind it.
    """
    source = tf.range(tf.shape(drawn.weights)[1])
    first, last = tokens
    sides = tf.cast(tf.stack([source < first[:, None], source >= last[:, None]]), tf.float32)
    before, after = tf.unstack(tf.matmul(sides, drawn.weights[None], transpose_b=True))  # (K, T)
    left = tf.pad(tf.cumsum(before, axis=1), [[0, 0], [1, 0]])  # (K, T + 1)
    right = tf.pad(tf.cumsum(after, axis=1, reverse=True), [[0, 0], [0, 1]])
    allowed = tf.gather(may_stand, drawn.ends)
    return tf.gather(drawn.ends, tf.argmax(tf.where(allowed, left + right, -1.0), axis=1))


def _gaps(output: tf.Tensor) -> tf.Tensor:
    """Between which bytes (n,) of an output a span may stand: bool (n + 1,), not inside words."""
    padded = tf.pad(tf.cast(output, tf.int32), [[0, 2]], constant_values=_SPACE)
    here, following = padded[:-1], padded[1:]
    is_mark = _is_one_of(here, b".,;:!?)") & (following == _SPACE)
    is_wide = (here >= _FIRST_WIDE) & (here <= _LAST_WIDE)  # of scripts without spaces
    return (tf.range(tf.size(here)) == 0) | (here == _SPACE) | is_mark | is_wide


def _is_one_of(values: tf.Tensor, characters: bytes) -> tf.Tensor:
    return tf.reduce_any(values[..., None] == list(characters), axis=-1)


def _inside(given: Located, size: tf.Tensor) -> tf.Tensor:
    """Which places between bytes are inside a span: bool (size + 1,)."""
    return tf.reduce_any(_marks(given.starts + 1, given.stops, size + 1), axis=0)


def _with_space(output: tf.Tensor, given: Located) -> tf.Tensor:
    """The start of each span (M,), or of the space before it if a space or a mark follows it."""
    before = _byte_at(output, given.starts - 1, 0) == _SPACE
    after = _is_one_of(_byte_at(output, given.stops, _SPACE), _CLOSING)
    return tf.where(before & after, given.starts - 1, given.starts)


def _byte_at(output: tf.Tensor, index: tf.Tensor, outside: int) -> tf.Tensor:
    """The bytes (K,) at some indices, int32; `outside` beyond the first and last byte."""
    padded = tf.pad(tf.cast(output, tf.int32), [[1, 1]], constant_values=outside)
    return tf.gather(padded, index + 1)


def _spaced(
    source: tf.Tensor, wanted: Located, output: tf.Tensor, start: tf.Tensor, stop: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Where spans begin in place of the bytes from start to stop, and the spans with spaces.

    A tag has spaces where it has some in the source. Another span has spaces on both sides, but
    none before a mark or behind an opening parenthesis.
    """
    text = tf.io.decode_raw(source, tf.uint8)
    is_tag = tf.strings.regex_full_match(wanted.spans, TAG)
    had_before = (_byte_at(text, wanted.starts - 1, _SPACE) == _SPACE) | ~is_tag
    had_after = (_byte_at(text, wanted.stops, _SPACE) == _SPACE) | ~is_tag
    follows = (start == stop) & (_byte_at(output, stop, 0) == _SPACE) & had_before & ~had_after
    start, stop = (place + tf.cast(follows, tf.int32) for place in (start, stop))
    left = had_before & ~_is_one_of(_byte_at(output, start - 1, _SPACE), b" (")
    right = had_after & ~_is_one_of(_byte_at(output, stop, _SPACE), _CLOSING)
    parts = [tf.where(left, " ", ""), wanted.spans, tf.where(right, " ", "")]
    return start, tf.strings.join(parts)


def _nested(spans: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
    """The places (K,) of spans. If tags do not nest there, they stand in the order of the source.

    The tags then share their places.
    """
    order = tf.argsort(start, stable=True)
    wrong = is_well_formed(spans) & ~is_well_formed(tf.gather(spans, order))
    chosen = tf.where(_is_paired(spans))  # (P, 1)
    places = tf.sort(tf.gather_nd(start, chosen))
    return tf.where(wrong, tf.tensor_scatter_nd_update(start, chosen, places), start)


def _joined(output: tf.Tensor, removed: tf.Tensor, start: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
    """The output without the removed bytes, with each span before the byte `start`."""
    left = tf.boolean_mask(tf.strings.bytes_split(output), ~removed)
    places = tf.boolean_mask(tf.range(tf.size(removed)), ~removed)
    order = tf.argsort(tf.concat([2 * places + 1, 2 * start], 0), stable=True)
    return tf.strings.reduce_join(tf.gather(tf.concat([left, spans], 0), order))


@own_settings()
def attention(model: Any, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """The attention of targets (R, T) to the text of sources (R, S), float32 (R, T, S).

    It is the mean over layers and heads. The end token gets most attention of words that need none,
    so it does not count, and the rows sum to 1 without it.
    """
    of_layers = model.run((source, shift_right(target))).cross_attention
    weights = tf.add_n([tf.cast(tf.reduce_mean(w, 1), tf.float32) for w in of_layers])
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
    sizes = tf.strings.length(graph.decode(starts, text))
    sizes = tf.minimum(sizes, sizes[:, -1:])
    return tf.transpose(tf.scan(tf.maximum, tf.transpose(sizes)))  # a half character adds nothing
