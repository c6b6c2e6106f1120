"""Faults of translations that their texts show, on tensors: loops, copies, scripts, numbers."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.machine.rare_functions import RARE_FUNCTION
from tf_transformer.text.capitals import NUMBERS
from tf_transformer.text.kept_spans import CODES, IN_CODES, NO_CODES
from tf_transformer.text.normalization import LETTERS, MARKS, WHITE_SPACE, class_of

# The least length of a loop, in units that equal the unit k places later, for k = 1, 2, ...
_LOOP_OF_WORDS = (2, 4, *range(3, 13))  # a phrase three times, or one of three words twice
_LOOP_OF_CHARACTERS = (11, *range(10, 61, 5))  # few characters six times, in twelve or more
# What such characters need without spaces: 18 of them, or 12 that repeat one or two. Of these two,
# one is a vowel here, or none is. Most long words have none of the three.
_VOWELS, _SPACES = "aeiouyäöüAEIOUYÄÖÜ", WHITE_SPACE[1:-1]
_MAY_STUTTER = (
    rf"(?s).*(?:[^{_SPACES}]{{18}}|(?:[{_VOWELS}][^{_SPACES}]){{5}}[{_VOWELS}]"
    rf"|[^{_SPACES}{_VOWELS}]{{12}}).*"
)
FEWEST_REPEATED = 2  # words of texts and translations, of which one repeats a phrase or the other
_FEWEST_COPIED = 3  # words: shorter copies are often names
_COPIED = 0.8  # share of the words of a translation that a text has
_BETWEEN_DIGITS = ".,:'’\u00a0\u202f"
_SCRIPTS = 256  # more than the codes of ICU
_LATIN, _HAN, _EAST_ASIAN = 25, 17, (5, 17, 18, 20, 22)  # Bopomofo, Hangul, Hiragana, Katakana
_MERGED = np.where(np.isin(np.arange(_SCRIPTS), _EAST_ASIAN), _HAN, np.arange(_SCRIPTS))
_MERGED[1] = 0  # characters of several scripts
_USED = 0.001  # share of the letters of pieces in a script that a vocabulary is for
_FACTOR, _SLACK = 3, 10  # the longer of two texts has at most 3 · shorter + 10 bytes


class Pairs(NamedTuple):
    """Texts (B,) and their translations (B,), and what rules read of both, in 2 · B rows."""

    strings: tf.Tensor  # string (2·B,), valid UTF-8: the texts, then the translations
    words: tf.Tensor  # string (W,), in lower case; marks inside belong to words
    ids: tf.Tensor  # int32 (W,): equal words have equal ids
    row: tf.Tensor  # int64 (W,), of each word
    repeated: tf.Tensor  # int32: the number of words that are equal to an earlier one

    @classmethod
    def of(cls, source: tf.Tensor, translation: tf.Tensor) -> "Pairs":
        """Divides strings (B,) and strings (B,), valid UTF-8 without NUL."""
        strings = tf.concat([source, translation], axis=0)
        mark = f"[^{_word()}{WHITE_SPACE[1:-1]}]"
        around = f"(?:^|{WHITE_SPACE}){mark}+|{mark}+(?:{WHITE_SPACE}+{mark}*|$)"
        lower = tf.strings.regex_replace(tf.strings.lower(strings, "utf-8"), around, " ")
        words = tf.strings.split(lower)
        distinct, ids = tf.unique(words.flat_values)
        repeated = tf.size(ids) - tf.size(distinct)
        return cls(strings, words.flat_values, ids, words.value_rowids(), repeated)

    def if_any(self, condition: tf.Tensor, rule: Callable[[], tf.Tensor]) -> tf.Tensor:
        """A rule, bool (B,), which holds for no translation if a cheap condition is false."""
        size = tf.size(self.strings) // 2
        return tf.cond(condition, apart(rule), lambda: tf.fill((size,), False))


def apart(rule: Callable[[], tf.Tensor]) -> Callable[[], tf.Tensor]:
    """The rule as one operation of a graph: each operation that does not run takes time, too."""
    return tf.function(rule, autograph=False, experimental_attributes=RARE_FUNCTION)


def has_loop(pairs: Pairs) -> tf.Tensor:
    """Which translations repeat a word or a phrase in a row, where their text does not: bool (B,).

    They have a phrase of three words or more twice in a row, or a shorter one three times, or the
    same few characters six times, twelve characters or more.

    Example:
        >>> texts = ["a small house", "very, very, very good"]
        >>> has_loop(Pairs.of(texts, ["das Haus, das Haus, das Haus", "sehr, sehr, sehr gut"]))
        <tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>
    """
    rows = tf.size(pairs.strings)
    stutters = may_stutter(pairs.strings)

    def of_characters() -> tf.Tensor:
        characters = tf.strings.unicode_decode(tf.where(stutters, pairs.strings, ""), "UTF-8")
        columns = characters.flat_values, characters.value_rowids()
        return _has_run(*columns, rows, _LOOP_OF_CHARACTERS)

    def of_words() -> tf.Tensor:
        return _has_run(pairs.ids, pairs.row, rows, _LOOP_OF_WORDS)

    of_phrases = pairs.if_any(pairs.repeated >= FEWEST_REPEATED, of_words)
    return of_phrases | pairs.if_any(tf.reduce_any(stutters), of_characters)


def may_stutter(strings: tf.Tensor) -> tf.Tensor:
    """Which strings (R,) may repeat a few characters in a row, by a cheap test: bool (R,)."""
    return tf.strings.regex_full_match(strings, _MAY_STUTTER)


def _has_run(
    units: tf.Tensor, row: tf.Tensor, rows: tf.Tensor, least: tuple[int, ...]
) -> tf.Tensor:
    """Which translations have `least[k - 1]` units in a row that recur k places later: bool (B,).

    A translation counts only if its text has none. `units`, int32 (U,), are those of `rows` = 2 · B
    rows, and `row`, int64 (U,), is the row of each.
    """
    most = len(least)  # K
    units = tf.concat([row * 2**32 + tf.cast(units, tf.int64), [-1]], axis=0)  # equal in a row only
    later = tf.range(tf.size(row))[:, None] + tf.range(1, most + 1)  # (U, K)
    is_equal = tf.equal(units[:-1, None], tf.gather(units, tf.minimum(later, tf.size(row))))
    run = tf.cumsum(tf.cast(~is_equal, tf.int32)) * most + tf.range(most)  # with the unit before
    lengths = tf.math.unsorted_segment_sum(
        tf.cast(is_equal, tf.int32), run, (tf.size(row) + 1) * most
    )
    is_long = tf.reduce_any(is_equal & (tf.gather(lengths, run) >= least), axis=1)
    found = tf.math.unsorted_segment_max(tf.cast(is_long, tf.int32), row, rows) > 0
    in_source, in_translation = tf.unstack(tf.reshape(found, (2, -1)))
    return in_translation & ~in_source


def is_copy(pairs: Pairs) -> tf.Tensor:
    """Which translations have the words of their text; one or two words may be a name: bool (B,).

    Example:
        >>> texts = ["Where is the station?", "Tom!"]
        >>> is_copy(Pairs.of(texts, ["Where is the Station?", "Tom!"])).numpy().tolist()
        [True, False]
    """
    rows = tf.size(pairs.strings)

    def has_most() -> tf.Tensor:
        common, counts = _common(pairs.ids, pairs.row, rows)
        is_word = tf.strings.regex_full_match(pairs.words, f"[{class_of(LETTERS)}]+")
        words = tf.math.unsorted_segment_sum(tf.cast(is_word, tf.int32), pairs.row, rows)
        is_most = tf.cast(common, tf.float32) > _COPIED * tf.cast(counts[1], tf.float32)
        return is_most & (counts[1] >= _FEWEST_COPIED) & (words[rows // 2 :] > 0)

    return pairs.if_any(pairs.repeated >= _FEWEST_COPIED, has_most)


def has_other_numbers(pairs: Pairs) -> tf.Tensor:
    """Which translations have other numbers above 12 than their text: bool (B,).

    Example:
        >>> texts = ["1,250.50 in 2019", "5 in 1998"]
        >>> has_other_numbers(Pairs.of(texts, ["2019: 1.250,50", "fünf, 1989"])).numpy().tolist()
        [False, True]
    """
    found = numbers(pairs.strings)
    ids = tf.unique(found.flat_values).idx
    common, counts = _common(ids, found.value_rowids(), tf.size(pairs.strings))
    return common < tf.reduce_max(counts, axis=0)


def numbers(text: tf.Tensor) -> tf.RaggedTensor:
    """The numbers above 12 of strings (B,), as digits: 1,000.5 and 1.000,5 are equal.

    Example:
        >>> numbers(tf.constant(["On May 5, 1,250 people paid 3.50 in room A40."])).to_list()
        [[b'1250', b'350']]
    """
    digit, letter = class_of(("Nd",)), class_of(LETTERS)
    number = f"[{digit}]+(?:[{_BETWEEN_DIGITS}][{digit}]+)*"
    # The digits of codes such as A4, %1 and &#160; are no numbers.
    text = tf.strings.regex_replace(text, f"(?:[{letter}_%{{]|&#){number}|({number})", "\0\\1\0")
    text = tf.strings.regex_replace(text, r"[^\x00]*\x00([^\x00]*)\x00|[^\x00]+$", r"\1 ")
    text = tf.strings.regex_replace(text, r"[.,:]00 ", " ")
    text = tf.strings.regex_replace(text, f"[{_BETWEEN_DIGITS}]", "")
    for value, of_value in enumerate(_digits()):
        text = tf.strings.regex_replace(text, f"[{of_value}]", str(value))
    text = tf.strings.regex_replace(text, r"\b0+", "")
    return tf.strings.split(tf.strings.regex_replace(text, r"\b(?:[0-9]|1[0-2])\b", ""))


def has_other_placeholders(pairs: Pairs) -> tf.Tensor:
    """Which translations have other placeholders of programs than their text: bool (B,).

    Example:
        >>> texts = ["%s of {name}", "<b>50%</b> of AT&T"]
        >>> has_other_placeholders(Pairs.of(texts, ["%s", "<b>50 %</b> bei AT&T"])).numpy().tolist()
        [True, False]
    """
    may_have = tf.strings.regex_full_match(pairs.strings, f"(?s).*(?:[{IN_CODES}]|:[a-z]).*")

    def differ() -> tf.Tensor:
        marked = tf.strings.regex_replace(pairs.strings, f"{NO_CODES}|({CODES})|(?s:.)", "\\1\0")
        parts = tf.strings.split(marked, "\0")
        is_code = tf.not_equal(parts.flat_values, "")
        codes = tf.boolean_mask(parts.flat_values, is_code)
        ids = tf.unique(tf.strings.regex_replace(codes, "^&[^;]*$", "&")).idx  # any key of a menu
        row = tf.boolean_mask(parts.value_rowids(), is_code)
        common, counts = _common(ids, row, tf.size(pairs.strings))
        return common < tf.reduce_max(counts, axis=0)

    return pairs.if_any(tf.reduce_any(may_have), differ)


def has_wrong_script(pairs: Pairs, of_target: Sequence[int] = ()) -> tf.Tensor:
    """Which translations have a word in a script that their text has not: bool (B,).

    Latin letters stand in texts of all scripts, so they do not count. Neither does the script of
    most words of the translation, if it is one `of_target`; see `scripts_of`. Empty: it may be any.

    Example:
        >>> pairs = Pairs.of(["a small house", "a house"], ["ein маленький Haus", "дом"])
        >>> has_wrong_script(pairs).numpy().tolist()
        [True, False]
        >>> has_wrong_script(pairs, scripts_of(["Haus"])).numpy().tolist()
        [True, True]
    """
    in_source, counts = tf.unstack(_words_by_script(pairs))  # (B, C) each
    main = tf.one_hot(tf.argmax(counts, axis=1), _SCRIPTS, True, False)
    known = np.isin(np.arange(_SCRIPTS), of_target or range(_SCRIPTS))
    allowed = (in_source > 0) | (main & known) | (np.arange(_SCRIPTS) == _LATIN)
    return tf.reduce_any((counts > 0) & ~allowed, axis=1)


def scripts_of(pieces: Iterable[str]) -> list[int]:
    """The scripts that many letters of some pieces of text are in, as codes of ICU."""
    scripts = _scripts(tf.strings.unicode_decode("".join(pieces), "UTF-8")).numpy()
    counts = np.bincount(scripts[scripts > 0], minlength=_SCRIPTS)
    return np.flatnonzero(counts > _USED * counts.sum()).tolist()


def _scripts(characters: tf.Tensor) -> tf.Tensor:
    """The script of each code point, int32 (T,); 0 for those of several scripts."""
    codes = tf.strings.unicode_script(characters)
    return tf.gather(tf.constant(_MERGED, tf.int32), tf.maximum(codes, 0))


def _words_by_script(pairs: Pairs) -> tf.Tensor:
    """The number of words of two letters or more in each script, int32 (2, B, C).

    In East Asian scripts, which have no spaces, each pair of letters counts. Single letters are
    often symbols, such as Ω.
    """
    characters = tf.strings.unicode_decode(pairs.strings, "UTF-8")
    scripts, row = _scripts(characters.flat_values), characters.value_rowids()
    is_pair = tf.equal(scripts[1:], scripts[:-1]) & tf.equal(row[1:], row[:-1]) & (scripts[1:] > 0)
    is_first = ~tf.concat([[False], is_pair], axis=0)[:-1] | tf.equal(scripts[1:], _HAN)
    place = tf.cast(row[1:], tf.int32) * _SCRIPTS + scripts[1:]
    size = tf.size(pairs.strings) * _SCRIPTS
    counts = tf.math.unsorted_segment_sum(tf.cast(is_pair & is_first, tf.int32), place, size)
    return tf.reshape(counts, (2, -1, _SCRIPTS))


def is_out_of_proportion(pairs: Pairs) -> tf.Tensor:
    """Which of two texts have over three times, or under a third, of the other's bytes: bool (B,).

    Example:
        >>> is_out_of_proportion(Pairs.of(["Where is the station?"], ["Wo?"])).numpy().tolist()
        [True]
    """
    return differ_in_size(*tf.unstack(tf.reshape(pairs.strings, (2, -1))))


def differ_in_size(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """`is_out_of_proportion` for strings of shapes that fit together."""
    sizes = tf.strings.length(one), tf.strings.length(other)
    return tf.maximum(*sizes) > _FACTOR * tf.minimum(*sizes) + _SLACK


def _common(ids: tf.Tensor, row: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """How many ids (W,) in rows n and n + B are common, int32 (B,), and the sizes of rows (2, B).

    `row`, int64 (W,), is the row of each id, of `rows` = 2 · B.
    """
    of_pair, side = row % tf.cast(rows // 2, row.dtype), row // tf.cast(rows // 2, row.dtype)
    keys, place = tf.unique(of_pair * 2**32 + tf.cast(ids, tf.int64))
    place += tf.cast(side, tf.int32) * tf.size(keys)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(place), place, 2 * tf.size(keys))
    counts = tf.reshape(counts, (2, -1))
    columns = tf.concat([tf.reduce_min(counts, axis=0)[None], counts], axis=0)  # (3, U)
    sums = tf.math.unsorted_segment_sum(tf.transpose(columns), keys // 2**32, rows // 2)
    return sums[:, 0], tf.transpose(sums[:, 1:])


@functools.cache
def _word() -> str:
    return class_of((*LETTERS, *NUMBERS, *MARKS)) + "_"


@functools.cache
def _digits() -> list[str]:
    """The digits of all scripts with the values 0 to 9, each as the inside of a class."""
    import sys
    import unicodedata

    of_values = [""] * 10
    for character in filter(str.isdecimal, map(chr, range(sys.maxunicode + 1))):
        of_values[unicodedata.decimal(character)] += character
    return of_values
