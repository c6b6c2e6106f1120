"""Places of texts where terms apply, as TensorFlow operations, with the rules of `terms`."""

from typing import NamedTuple

import tensorflow as tf

from tf_transformer.text.graph_splitter import split_sentences
from tf_transformer.text.graph_tokenizer import valid
from tf_transformer.text.normalization import WHITE_SPACE
from tf_transformer.text.terms import ALONE, LINE, unit_pattern, word_class


class Terms(NamedTuple):
    """The terms of texts (B,), one after another."""

    text_of: tf.Tensor  # int64 (T,): index of the text of each term, sorted
    sources: tf.Tensor  # string (T,)
    targets: tf.Tensor  # string (T,)


class Matches(NamedTuple):
    """The places of texts (B,) where terms apply, in order."""

    text_of: tf.Tensor  # int64 (N,): index of the text of each place, sorted
    starts: tf.Tensor  # int32 (N,): of the source in its text, in bytes
    stops: tf.Tensor  # int32 (N,)
    targets: tf.Tensor  # string (N,)


def parse_terms(terms: tf.Tensor) -> Terms:
    """Reads glossaries (B,), as `terms.parse_terms` does. A line that is not a term is ignored."""
    lines = tf.strings.split(valid(terms), "\n")
    is_term = tf.strings.regex_full_match(lines.flat_values, LINE)
    text_of, line = (
        tf.boolean_mask(field, is_term) for field in (lines.value_rowids(), lines.flat_values)
    )
    sides = (r"\t.*", r"[^\t]*\t")  # what is not the source, and what is not the target
    outer = f"^{WHITE_SPACE}+|{WHITE_SPACE}+$"
    sources, targets = (
        tf.strings.regex_replace(tf.strings.regex_replace(line, f"(?s){other}", ""), outer, "")
        for other in sides
    )
    return Terms(text_of, sources, targets)


def find_terms(text: tf.Tensor, terms: Terms, language: str = "") -> Matches:
    r"""The places where terms apply to strings (B,), valid UTF-8 without NUL; see `terms`.

    Example:
        >>> terms = parse_terms(tf.constant(["car\tAuto\ncar park\tParkplatz"]))
        >>> find_terms(tf.constant(["Car park, cars; my car."]), terms).targets.numpy().tolist()
        [b'Parkplatz', b'Auto']
    """
    sentences = split_sentences(text, language)
    pieces = _with_units(sentences.flat_values)
    units, phrases = pieces[:, 1::2], _with_units(terms.sources)[:, 1::2]
    text_of = tf.gather(sentences.value_rowids(), units.value_rowids())
    first, lowered = _first_words(units)
    strings = tf.concat([units.flat_values, lowered, phrases.flat_values], 0)
    count = tf.size(units.flat_values)
    of_words, of_phrases = tf.split(
        tf.unique(strings).idx, [count + tf.size(first), tf.size(phrases.flat_values)]
    )
    units, phrases = units.with_flat_values(of_words[:count]), phrases.with_flat_values(of_phrases)

    # A phrase may stand where its first unit stands.
    places = tf.concat([tf.range(count), first], 0)
    firsts = tf.gather(of_phrases, phrases.row_starts())
    word, term = _equal_pairs(of_words, tf.gather(text_of, places), firsts, terms.text_of)
    place = tf.gather(places, word)
    lengths = tf.gather(tf.cast(phrases.row_lengths(), tf.int32), term)
    stands = _rest_follows(units, phrases, place, term)
    fields = (place, lengths, tf.cast(word >= count, tf.int32), term)
    place, lengths, is_lowered, term = (tf.boolean_mask(field, stands) for field in fields)
    order = _order_of(place, -lengths, is_lowered, term)
    place, lengths, term = (tf.gather(field, order) for field in (place, lengths, term))
    chosen = _without_overlaps(place, lengths)
    place, lengths, term = (tf.boolean_mask(field, chosen) for field in (place, lengths, term))

    starts, stops = _bytes_of_units(text, sentences, pieces)
    starts, stops = tf.gather(starts, place), tf.gather(stops, place + lengths - 1)
    return Matches(tf.gather(text_of, place), starts, stops, tf.gather(terms.targets, term))


def _with_units(text: tf.Tensor) -> tf.RaggedTensor:
    """Divides strings (B,) into space, unit, space, ..., space: string (B, None)."""
    return tf.strings.split(tf.strings.regex_replace(text, unit_pattern(), "\0\\0\0"), "\0")


def _first_words(units: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first words in rows of units (R, None), which get a small letter: string (F,).

    Before them come their places among the flat values, int32 (F,).
    """
    is_word = tf.strings.regex_full_match(units.flat_values, f"[{word_class()}{ALONE}]+")
    before = tf.cumsum(tf.cast(is_word, tf.int32), exclusive=True)
    of_row = before - tf.gather(before, tf.gather(units.row_starts(), units.value_rowids()))
    places = tf.cast(tf.where(is_word & tf.equal(of_row, 0))[:, 0], tf.int32)
    words = tf.gather(units.flat_values, places)
    letters = tf.strings.lower(tf.strings.substr(words, 0, 1, unit="UTF8_CHAR"), "utf-8")
    rest = tf.strings.substr(words, 1, tf.int32.max, unit="UTF8_CHAR")
    return places, tf.strings.join([letters, rest])


def _rest_follows(
    units: tf.RaggedTensor, phrases: tf.RaggedTensor, place: tf.Tensor, term: tf.Tensor
) -> tf.Tensor:
    """Whether a row of units goes on at `place` (P,) with phrase `term` (P,): bool (P,).

    Units and phrases are ids, int32 (R, None). Their first units are not compared.
    """
    steps = tf.ragged.range(1, tf.gather(tf.cast(phrases.row_lengths(), tf.int32), term))

    def of_steps(values: tf.Tensor) -> tf.Tensor:
        return tf.repeat(tf.cast(values, tf.int32), steps.row_lengths())

    there = of_steps(place) + steps.flat_values
    in_row = there < of_steps(tf.gather(units.row_limits(), tf.gather(units.value_rowids(), place)))
    there = tf.minimum(there, tf.size(units.flat_values) - 1)
    wanted = of_steps(tf.gather(phrases.row_starts(), term)) + steps.flat_values
    equal = tf.equal(tf.gather(units.flat_values, there), tf.gather(phrases.flat_values, wanted))
    return tf.reduce_all(steps.with_flat_values(in_row & equal), axis=1)


def _bytes_of_units(
    text: tf.Tensor, sentences: tf.RaggedTensor, pieces: tf.RaggedTensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Where each unit starts and stops in its text, in bytes: two of int32 (U,).

    The strings (B,) consist of sentences (B, None), and these of `pieces`; see `_with_units`.
    """
    before = tf.cumsum(tf.strings.length(text), exclusive=True)
    before = tf.gather(before, tf.gather(sentences.value_rowids(), pieces.value_rowids()))
    sizes = tf.strings.length(pieces.flat_values)
    stops = tf.cumsum(sizes) - before
    is_unit = tf.ragged.range(pieces.row_lengths()).flat_values % 2 == 1
    return tf.boolean_mask(stops - sizes, is_unit), tf.boolean_mask(stops, is_unit)


def _equal_pairs(
    ids: tf.Tensor, groups: tf.Tensor, other_ids: tf.Tensor, other_groups: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The pairs of equal ids in the same group: int32 (P,) indices of both sides."""
    factor = tf.cast(
        tf.maximum(tf.reduce_max(tf.concat([ids, other_ids, [0]], 0)) + 1, 1), tf.int64
    )
    keys = groups * factor + tf.cast(ids, tf.int64)
    others = other_groups * factor + tf.cast(other_ids, tf.int64)
    order = tf.argsort(others, stable=True)
    others = tf.gather(others, order)
    first, last = (tf.searchsorted(others, keys, side) for side in ("left", "right"))
    ranges = tf.ragged.range(first, last)
    one = tf.cast(ranges.value_rowids(), tf.int32)
    return one, tf.gather(order, ranges.flat_values)


def _order_of(*keys: tf.Tensor) -> tf.Tensor:
    """The order of rows by their keys (P,), the most important first: int32 (P,)."""
    order = tf.range(tf.size(keys[0]))
    for key in reversed(keys):
        order = tf.gather(order, tf.argsort(tf.gather(key, order), stable=True))
    return order


def _without_overlaps(places: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Which spans (P,), in order, a walk from left to right meets: bool (P,).

    It goes from a span to the next one that starts behind it. After n rounds, the first 2ⁿ spans of
    the walk are known.
    """
    count = tf.size(places)
    after = tf.concat([tf.searchsorted(places, places + lengths), [count]], 0)
    met = tf.cast(tf.equal(tf.range(count + 1), 0), tf.int32)

    def double(rounds: tf.Tensor, met: tf.Tensor, after: tf.Tensor) -> tuple[tf.Tensor, ...]:
        met = tf.maximum(met, tf.math.unsorted_segment_max(met, after, count + 1))
        return rounds * 2, met, tf.gather(after, after)

    _, met, _ = tf.while_loop(lambda rounds, *_: rounds < count, double, (1, met, after))
    return met[:-1] > 0
