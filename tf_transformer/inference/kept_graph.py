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
from tf_transformer.text.kept_spans import (
    ALONE,
    CLOSING,
    REPLACEMENT,
    TAG,
    TAG_NAME,
    WITHOUT_SPAN,
    pattern_of,
)
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID

ATTENDED = 0.5  # the share of attention with which a token is a copy of a span
# Above these, the spans stand before the translation: memory and time to place them are quadratic.
MOST_SPANS, MOST_BYTES = 500, 2**14  # spans of a text and its translation, bytes of the text
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
    fixed: tf.Tensor  # int32 scalar: bytes of the output that a prefix gave, which stay


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
        self,
        graph: Any,
        hypotheses: Hypotheses,
        text: tf.Tensor,
        outputs: tf.Tensor,
        prefix: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """The outputs (B, N) of a `SearchGraph` for the clean strings (B,), repaired.

        The tokens of a prefix, int32 (B, P), stay; spans that it repeats are repeated.
        """
        wanted = self.joined_spans(graph.codec["source"].split_tag(text)[1])
        # A missing hypothesis stays empty.
        places = tf.where(tf.not_equal(wanted, "")[:, None] & (hypotheses.lengths > 0))  # (R, 2)

        def check() -> tf.Tensor:
            given = self.joined_spans(tf.gather_nd(outputs, places))
            wrong = tf.boolean_mask(places, tf.not_equal(tf.gather(wanted, places[:, 0]), given))
            return tf.cond(tf.size(wrong) > 0, lambda: repair(wrong), lambda: outputs)

        def repair(wrong: tf.Tensor) -> tf.Tensor:
            row = wrong[:, 0]
            ids, given = tf.gather_nd(hypotheses.ids, wrong), tf.gather_nd(outputs, wrong)
            fixed = tf.zeros(tf.shape(row), tf.int32)
            if prefix is not None:
                is_text = tf.gather(prefix, row) > BOS_ID  # `open_words` adds the start id
                fixed = tf.math.count_nonzero(is_text, axis=1, dtype=tf.int32)
            repaired = self._repaired(graph, tf.gather(text, row), ids, given, fixed)
            return tf.tensor_scatter_nd_update(outputs, wrong, repaired)

        return tf.cond(tf.size(places) > 0, check, lambda: outputs)

    def joined_spans(self, text: tf.Tensor) -> tf.Tensor:
        """The spans of strings (B,), each with a NUL behind it, as strings (B,)."""
        marked = tf.strings.regex_replace(text, self.pattern, REPLACEMENT) + "\0\0"
        pairs = tf.strings.regex_replace(marked, r"[^\x00]*\x00([^\x00]*)\x00", "\\1\0")
        return tf.strings.regex_replace(pairs, r"^\x00+|(\x00)\x00+", "\\1")

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

    def _repaired(
        self, graph: Any, text: tf.Tensor, ids: tf.Tensor, outputs: tf.Tensor, fixed: tf.Tensor
    ) -> tf.Tensor:
        """Repairs the outputs (R,) with ids (R, T) for strings (R,); `fixed` (R,) tokens stay."""
        ends = ends_of_tokens(graph, ids, text)
        before_end = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1) == 0
        is_text = before_end & tf.not_equal(ids, PAD_ID)
        source = graph.encode(text)[0].to_tensor(PAD_ID)
        weights = attention(graph.model, source, ids) * tf.cast(is_text, tf.float32)[..., None]
        tags, rests = graph.codec["source"].split_tag(text)
        fixed = tf.gather(ends, tf.minimum(fixed, tf.shape(ids)[1]), batch_dims=1)

        def repair(row: tuple[tf.Tensor, ...]) -> tf.Tensor:
            tag, rest, *drawn = row

            def count_tokens(starts: tf.Tensor) -> tf.Tensor:
                return lengths_of(graph.encode(tf.strings.join([tag, starts]))[0]) - 1

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

        def repaired() -> tf.Tensor:
            placed = place(source, wanted, given, drawn, count_tokens)
            in_start = tf.reduce_any(_matches(wanted.spans, self.locate(start).spans), axis=1)
            first = tf.concat([apart[None], tf.boolean_mask(wanted.spans, ~in_start)], 0)
            # These two rarely have to do: the spans alone, and the spans before all other text.
            result = _with_spaces(first)
            before_all = _with_spaces(tf.concat([first, texts], 0))
            for better in (before_all, valid(placed), drawn.output):
                is_right = holds(wanted.spans, self.locate(better).spans)
                is_right &= tf.equal(tf.strings.substr(better, 0, drawn.fixed), start)
                result = tf.where(is_right, better, result)
            return result

        is_small = tf.size(wanted.spans) + tf.size(given.spans) <= MOST_SPANS
        is_small &= tf.strings.length(source) <= MOST_BYTES
        in_order = tf.concat([apart[None], wanted.spans, texts], 0)
        return tf.cond(is_small, repaired, lambda: _with_spaces(in_order))


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
    in_source = tf.reduce_sum(tf.cast(wanted[:, None] == wanted, tf.int32), axis=1)
    in_output = tf.reduce_sum(tf.cast(wanted[:, None] == given, tf.int32), axis=1)
    return tf.reduce_all(in_source == in_output) & (~is_well_formed(wanted) | is_well_formed(given))


def is_well_formed(spans: tf.Tensor) -> tf.Tensor:
    """Whether the tags among spans (K,) open and close as in XML: bool scalar."""
    elements = tf.math.count_nonzero(openings(spans) >= 0)
    return 2 * elements == tf.math.count_nonzero(_is_paired(spans))


def openings(spans: tf.Tensor) -> tf.Tensor:
    """For each span that closes an element, the index of the tag that opens it: int32 (K,).

    Other spans, and tags that close nothing, have -1.
    """
    is_tag = _is_paired(spans)
    names = tf.strings.regex_replace(spans, TAG_NAME, r"\1")
    closes = is_tag & tf.strings.regex_full_match(spans, CLOSING)
    level = tf.cumsum(tf.where(closes, -1, tf.cast(is_tag, tf.int32)))
    level += tf.cast(closes, tf.int32)  # equal for the two tags of an element
    place = tf.range(tf.size(spans))
    earlier = is_tag & (level[:, None] == level) & (place < place[:, None])
    before = tf.reduce_max(tf.where(earlier, place, -1), axis=1)  # the previous tag of the level
    opened = tf.maximum(before, 0)
    is_pair = closes & (before >= 0) & ~tf.gather(closes, opened)
    return tf.where(is_pair & (names == tf.gather(names, opened)), before, -1)


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
    equal = _matches(wanted.spans, given.spans)  # (K, M)
    is_there, is_kept = tf.reduce_any(equal, axis=1), tf.reduce_any(equal, axis=0)
    in_given = _marks(given.starts, given.stops, size)  # (M, n)
    in_kept = tf.reduce_any(in_given & is_kept[:, None], axis=0)  # (n,)
    is_free = (tf.range(size) >= drawn.fixed) & ~in_kept

    tokens = _token_ranges(source, wanted, count_tokens)
    attended = _attended_bytes(drawn, tokens, output) & is_free & ~is_there[:, None]  # (K, n)
    touches = _overlap(attended, tf.transpose(in_given)) & ~is_kept  # (K, M)
    changed = _overlap(touches, in_given)  # (K, n)
    copies = (attended | changed) & is_free
    is_wrong = tf.reduce_any(wanted.spans[:, None] == given.spans, axis=0)
    is_wrong |= tf.strings.regex_full_match(given.spans, TAG)
    removed = _marks(_with_space(output, given), given.stops, size)
    removed = tf.reduce_any(removed & (is_wrong & ~is_kept)[:, None], axis=0)
    removed = (removed & is_free) | in_kept | tf.reduce_any(copies, axis=0)

    is_outside = ~_inside(given, size) & (tf.range(size + 1) >= drawn.fixed)  # (n + 1,)
    gap = _fitting_gap(drawn, tokens, _gaps(output) & is_outside)  # (K,)
    opening = openings(wanted.spans)
    opened = tf.maximum(opening, 0)
    content = _attended_bytes(drawn, (tf.gather(tokens[1], opened), tokens[0]), output)
    gap = _around_contents(gap, content, opening, is_outside)
    has_copy = tf.reduce_any(copies, axis=1)
    start, stop = (tf.where(has_copy, end, gap) for end in _ends(copies))
    had_space = _had_space(source, wanted)
    step = _behind_space(wanted.spans, had_space, _byte_at(output, stop, 0)) & (start == stop)
    start += tf.cast(step, tf.int32)
    own = tf.reduce_max(tf.where(equal, given.starts, 0), axis=1)
    start = tf.where(is_there, own, start)
    closes = ~is_there & (opening >= 0)
    start = tf.where(closes, tf.maximum(start, tf.gather(start, opened)), start)
    spans = _spaced(wanted.spans, had_space, output, start, tf.maximum(start, stop))
    spans = tf.where(is_there, wanted.spans, spans)
    return _joined(drawn.output, removed, _nested(wanted.spans, start), spans)


def _matches(wanted: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
    """Which spans (K,) and (M,) are the same: bool (K, M). The k-th of equal spans match."""
    return _numbered(wanted)[:, None] == _numbered(given)


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


def _overlap(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Which rows of (K, m) and columns of (m, n) have a mark in common: bool (K, n)."""
    return tf.matmul(tf.cast(left, tf.float32), tf.cast(right, tf.float32)) > 0


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


def _around_contents(
    gap: tf.Tensor, content: tf.Tensor, opening: tf.Tensor, allowed: tf.Tensor
) -> tf.Tensor:
    """The gaps (K,) of spans, but of an element's tags the two sides of its content, (K, n).

    Where an element closes, `opening` (K,) has the index of the tag that opens it, else -1.
    """
    first, stop = _ends(content)
    fits = tf.reduce_any(content, axis=1) & tf.gather(allowed, first) & tf.gather(allowed, stop)
    closing = tf.where(fits & (opening >= 0))  # (E, 1)
    gap = tf.tensor_scatter_nd_update(gap, closing, tf.gather_nd(stop, closing))
    opened = tf.gather(opening, closing)
    return tf.tensor_scatter_nd_update(gap, opened, tf.gather_nd(first, closing))


def _ends(marks: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first byte of each row of marks (K, n), and the byte after the last: two of int32 (K,).

    A row without marks has n and 0.
    """
    size = tf.shape(marks)[1]
    byte = tf.range(size)
    first = tf.reduce_min(tf.where(marks, byte, size), axis=1)
    stop = tf.reduce_max(tf.where(marks, byte + 1, 0), axis=1)
    return tf.minimum(first, size), tf.maximum(stop, 0)  # an empty output has no bytes


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


def _had_space(source: tf.Tensor, wanted: Located) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether spans have spaces before and after them: two of bool (K,).

    Tags have those of the source. Other spans are words, which have spaces on both sides.
    """
    text = tf.io.decode_raw(source, tf.uint8)
    is_word = ~tf.strings.regex_full_match(wanted.spans, TAG)
    before, after = (
        _byte_at(text, place, _SPACE) == _SPACE for place in (wanted.starts - 1, wanted.stops)
    )
    return before | is_word, after | is_word


def _behind_space(
    spans: tf.Tensor, had_space: tuple[tf.Tensor, tf.Tensor], following: tf.Tensor
) -> tf.Tensor:
    """Which spans (K,) stand behind the space of their gap, if the `following` byte is one."""
    before, after = had_space
    closes = tf.strings.regex_full_match(spans, CLOSING)
    return (following == _SPACE) & (before | ~closes) & ~after


def _spaced(
    spans: tf.Tensor,
    had_space: tuple[tf.Tensor, tf.Tensor],
    output: tf.Tensor,
    start: tf.Tensor,
    stop: tf.Tensor,
) -> tf.Tensor:
    """The spans (K,) with their spaces, for places between two bytes of an output.

    No space stands before a mark or another space, or behind an opening parenthesis.
    """
    before, after = had_space
    left = before & ~_is_one_of(_byte_at(output, start - 1, _SPACE), b" (")
    right = after & ~_is_one_of(_byte_at(output, stop, _SPACE), _CLOSING)
    return tf.strings.join([tf.where(left, " ", ""), spans, tf.where(right, " ", "")])


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
