"""Where the spans of a text stand in an output of a model, on tensors.

A span stands in place of what the model made of it: the bytes whose attention goes to the span. If
there are none, it stands where the fewest words around the span change sides. The model does not
read the tags of elements. They enclose what it made of the content.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.text.elements import is_well_formed, openings
from tf_transformer.text.kept_spans import ATTENDED, CLOSING, CLOSING_MARKS, OF_MARKS, TAG
from tf_transformer.text.normalization import WHITE_SPACE

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
    equal = matches(wanted.spans, given.spans)  # (K, M)
    is_there, is_kept = tf.reduce_any(equal, axis=1), tf.reduce_any(equal, axis=0)
    in_given = _marks(given.starts, given.stops, size)  # (M, n)
    in_kept = tf.reduce_any(in_given & is_kept[:, None], axis=0)  # (n,)
    is_free = (tf.range(size) >= drawn.fixed) & ~in_kept

    tokens = _token_ranges(source, wanted, count_tokens)
    attended = _attended_bytes(drawn, tokens, output) & is_free & ~is_there[:, None]  # (K, n)
    touches = _overlap(attended, tf.transpose(in_given)) & ~is_kept  # (K, M)
    changed = _overlap(touches, in_given)  # (K, n)
    copies = (attended | changed) & is_free
    copies |= _first_words(wanted.spans, copies, drawn.output) & is_free
    is_wrong = tf.reduce_any(wanted.spans[:, None] == given.spans, axis=0)
    is_wrong |= tf.strings.regex_full_match(given.spans, TAG)
    removed = _marks(_with_space(output, given), given.stops, size)
    removed = tf.reduce_any(removed & (is_wrong & ~is_kept)[:, None], axis=0)
    removed = (removed & is_free) | in_kept | tf.reduce_any(copies, axis=0)

    is_outside = ~_inside(given, size) & (tf.range(size + 1) >= drawn.fixed)  # (n + 1,)
    gap = _fitting_gap(drawn, tokens, _gaps(output) & is_outside)  # (K,)
    opening = openings(wanted.spans)
    opened = tf.maximum(opening, 0)
    content = _content_bytes(drawn, (tf.gather(tokens[1], opened), tokens[0]), output)
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
    at, order = tf.unstack(_nested(wanted.spans, start, opening, output))
    stop = tf.where(at == start, tf.maximum(start, stop), at)
    spans = _spaced(wanted.spans, had_space, output, at, stop)
    spans = tf.where(is_there, wanted.spans, spans)
    return _joined(drawn.output, removed, tf.gather(at, order), tf.gather(spans, order))


def with_own_spaces(
    source: tf.Tensor, wanted: Located, output: tf.Tensor, given: Located
) -> tf.Tensor:
    """The output with the white space of the source between tags: string scalar.

    Two tags have it that touch each other in both, or have nothing but white space between them.
    """
    equal = matches(given.spans, wanted.spans)  # (M, K)
    is_tag = tf.strings.regex_full_match(given.spans, TAG)[:, None]
    place = tf.reduce_max(tf.where(equal & is_tag, tf.range(tf.size(wanted.spans)), -2), axis=1)
    before, after = tf.pad(place, [[1, 0]], constant_values=-2), tf.pad(place, [[0, 1]])  # (M + 1,)
    follows = (before >= 0) & (after == before + 1)
    own = _between(output, given)
    there = tf.gather(_between(source, wanted), tf.maximum(before + 1, 0))
    is_blank = tf.strings.regex_full_match(tf.stack([own, there]), f"{WHITE_SPACE}*")
    texts = tf.where(follows & tf.reduce_all(is_blank, axis=0), there, own)
    parts = tf.stack([texts, tf.concat([given.spans, [""]], 0)], axis=1)
    return tf.strings.reduce_join(parts)


def _between(text: tf.Tensor, located: Located) -> tf.Tensor:
    """The parts of a string before, between and behind its spans (K,): string (K + 1,)."""
    starts = tf.pad(located.stops, [[1, 0]])
    stops = tf.concat([located.starts, [tf.strings.length(text)]], 0)
    return tf.strings.substr(tf.repeat(text[None], tf.size(starts)), starts, stops - starts)


def matches(wanted: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
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
    return first, last


def _attended_bytes(
    drawn: Drawn, tokens: tuple[tf.Tensor, tf.Tensor], output: tf.Tensor
) -> tf.Tensor:
    """The bytes (n,) that a model made of each span: bool (K, n), one run of bytes in each row."""
    size = tf.size(output)
    of_bytes = _attention_of_bytes(drawn, tokens, output)
    high = of_bytes > ATTENDED
    run = tf.cumsum(tf.cast(~high, tf.int32), axis=1)
    best = tf.where(high, of_bytes, 0.0)
    is_best = high & (best == tf.reduce_max(best, axis=1, keepdims=True))
    best_run = tf.reduce_min(tf.where(is_best, run, size + 1), axis=1, keepdims=True)
    return high & (run == best_run)


def _content_bytes(
    drawn: Drawn, tokens: tuple[tf.Tensor, tf.Tensor], output: tf.Tensor
) -> tf.Tensor:
    """The bytes (n,) that a model made of the content of each element: bool (K, n).

    They are a run of whole words around the word with most attention to the content. Of all such
    runs, they have the largest sum of attention above `ATTENDED`.
    """
    size, place = tf.size(output), tf.range(tf.size(output))
    of_bytes = _attention_of_bytes(drawn, tokens, output)
    is_space = tf.equal(tf.cast(output, tf.int32), _SPACE)
    weight = tf.where(_is_letter(output), 1.0, tf.where(is_space, 0.0, OF_MARKS))
    best = tf.reduce_max(of_bytes * weight, axis=1, keepdims=True)
    is_best = (of_bytes * weight == best) & (best > 0)
    gain = tf.where(is_space, 0.0, of_bytes - ATTENDED) + tf.cast(is_best, tf.float32)
    peak = _ends(is_best)[0][:, None]
    total = tf.cumsum(gain, axis=1)
    # Equal sums around a space, which rounding would change after a subtraction.
    before = tf.where(place <= peak, tf.cumsum(gain, axis=1, exclusive=True), np.inf)
    until = tf.where(place >= peak, total, -np.inf)
    is_first = before == tf.reduce_min(before, axis=1, keepdims=True)
    is_last = until == tf.reduce_max(until, axis=1, keepdims=True)
    first = tf.reduce_max(tf.where(is_first, place, 0), axis=1, keepdims=True)
    last = tf.reduce_min(tf.where(is_last, place, size), axis=1, keepdims=True)
    return (place >= first) & (place <= last) & (best > 0)


def _attention_of_bytes(
    drawn: Drawn, tokens: tuple[tf.Tensor, tf.Tensor], output: tf.Tensor
) -> tf.Tensor:
    """The share of attention of the bytes (n,) of an output to some tokens: float32 (K, n)."""
    inside = tf.cast(_marks(*tokens, tf.shape(drawn.weights)[1]), tf.float32)
    share = tf.matmul(inside, drawn.weights, transpose_b=True)  # (K, T)
    last = tf.maximum(tf.shape(share)[1] - 1, 0)
    place = tf.range(tf.size(output))
    token = tf.minimum(tf.searchsorted(drawn.ends[1:], place, side="right"), last)
    return _mean_of_words(tf.gather(share, token, axis=1), output)


def _first_words(spans: tf.Tensor, copies: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """The bytes of a span's first word that stand before its copy, (K, n): bool (K, n).

    A model may write the number of `5 km` well, with little attention, and another unit behind it.
    """
    first, _ = _ends(copies)
    texts = tf.repeat(output[None], tf.size(first))
    has_space = tf.strings.substr(texts, first, tf.ones_like(first)) == " "  # that of a token
    first += tf.cast(has_space, tf.int32)
    words = tf.strings.regex_replace(spans, " .*", "") + " "
    before = " " + tf.strings.substr(texts, tf.zeros_like(first), first)
    start = tf.maximum(first - tf.strings.length(words), 0)
    stands = tf.strings.substr(before, start, tf.strings.length(before)) == " " + words
    is_first = stands & tf.reduce_any(copies, axis=1)
    return _marks(tf.where(is_first, start, first), first, tf.shape(copies)[1])


def _mean_of_words(values: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """The mean of values (K, n) over the letters and digits of each word of an output (n,).

    So no part of a word goes alone. Other characters keep their values.
    """
    is_letter = _is_letter(output)
    continues = is_letter & tf.concat([[False], is_letter[:-1]], 0)
    word = tf.cumsum(tf.cast(~continues, tf.int32)) - 1
    means = tf.math.unsorted_segment_mean(tf.transpose(values), word, tf.size(output))
    return tf.transpose(tf.gather(means, word))


def _is_letter(output: tf.Tensor) -> tf.Tensor:
    """Which bytes (n,) belong to letters or digits; all bytes beyond ASCII do: bool (n,)."""
    codes = tf.cast(output, tf.int32)
    return (codes >= 0x80) | tf.gather(_IS_LETTER, tf.minimum(codes, 0x7F))


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
    after = _is_one_of(_byte_at(output, given.stops, _SPACE), CLOSING_MARKS)
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
    right = after & ~_is_one_of(_byte_at(output, stop, _SPACE), CLOSING_MARKS)
    return tf.strings.join([tf.where(left, " ", ""), spans, tf.where(right, " ", "")])


def _nested(spans: tf.Tensor, start: tf.Tensor, opening: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """The places (K,) of spans and their order there: int32 (2, K).

    Places at which the tags of the source would not nest are changed; see `_apart`.
    """
    order = tf.argsort(start, stable=True)
    nest = is_well_formed(tf.gather(spans, order)) | ~is_well_formed(spans)
    as_they_are = tf.stack([start, order])
    return tf.cond(nest, lambda: as_they_are, lambda: _apart(start, opening, output))


def _apart(start: tf.Tensor, opening: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """The places (K,) of elements that nest, and the order of their tags there: int32 (2, K).

    The first of two elements that overlap ends where the second begins. Elements with the same
    words stand in each other.
    """
    closing = tf.cast(tf.where(opening >= 0), tf.int32)  # (E, 1)
    opened = tf.gather(opening, closing)  # (E, 1)
    first = tf.gather_nd(start, opened)
    last = tf.maximum(first, tf.gather_nd(start, closing))
    crosses = (first[:, None] < first) & (first < last[:, None]) & (last[:, None] < last)
    last = tf.reduce_min(tf.where(crosses, first, last[:, None]), axis=1)
    has_space = (_byte_at(output, last - 1, 0) == _SPACE) & (first < last - 1)
    start = tf.tensor_scatter_nd_update(start, closing, last - tf.cast(has_space, tf.int32))
    place = tf.range(tf.size(start))
    other = tf.tensor_scatter_nd_update(place, closing, opened[:, 0])  # the tag of the other side
    other = tf.tensor_scatter_nd_update(other, opened, closing[:, 0])
    # At a place, elements end, the inner ones first. Then others begin, the outer ones first.
    reach = tf.gather(start, other)
    order = tf.argsort(tf.where(reach < start, -other, place), stable=True)
    for key in (-reach, tf.sign(reach - start), start):  # the last one counts most
        order = tf.gather(order, tf.argsort(tf.gather(key, order), stable=True))
    return tf.stack([start, order])


def _joined(output: tf.Tensor, removed: tf.Tensor, start: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
    """The output without the removed bytes, with each span before the byte `start`."""
    left = tf.boolean_mask(tf.strings.bytes_split(output), ~removed)
    places = tf.boolean_mask(tf.range(tf.size(removed)), ~removed)
    order = tf.argsort(tf.concat([2 * places + 1, 2 * start], 0), stable=True)
    return tf.strings.reduce_join(tf.gather(tf.concat([left, spans], 0), order))
