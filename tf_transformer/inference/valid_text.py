"""Strings of an exported graph: clean text in, valid UTF-8 out."""

import tensorflow as tf

from tf_transformer.text.normalization import class_of, has_letters, is_blank
from tf_transformer.text.tokenizer import Tokenizer

# By the first byte of a character: its size in bytes and the range of its second byte.
_FIRST = [
    *[(1, 0, 0)] * 0x80,
    *[(0, 0, 0)] * 0x42,
    *[(2, 0x80, 0xBF)] * 0x1E,
    (3, 0xA0, 0xBF),
    *[(3, 0x80, 0xBF)] * 12,
    (3, 0x80, 0x9F),
    *[(3, 0x80, 0xBF)] * 2,
    (4, 0x90, 0xBF),
    *[(4, 0x80, 0xBF)] * 3,
    (4, 0x80, 0x8F),
    *[(0, 0, 0)] * 11,
]


def clean(text: tf.Tensor) -> tf.Tensor:
    """Strings as `Tokenizer.encode` reads them: blank ones are empty, and none has NUL.

    Broken UTF-8 is replaced as by Python's "replace", which translate.py uses.
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, r"\x00", "")
    return tf.where(tf.strings.regex_full_match(text, f"[{class_of(is_blank)}]*"), "", text)


def without_letters(text: tf.Tensor) -> tf.Tensor:
    """Which of some strings have no letter, though they are not empty."""
    no_letter = tf.strings.regex_full_match(text, f"[^{class_of(has_letters)}]*")
    return tf.logical_and(no_letter, tf.not_equal(text, ""))


class WholeCharacters:
    """Finds the bytes of incomplete characters, which `Tokenizer.decode` drops.

    Args:
        tokenizer: the tokenizer; each of 256 ids may be a byte.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._byte_of = [tokenizer.byte_of.get(i, -1) for i in range(tokenizer.vocabulary_size)]

    def __call__(self, ids: tf.Tensor, inside: tf.Tensor) -> tf.Tensor:
        """Which of the ids (R, L) that are `inside` a text are not of incomplete characters."""
        values = tf.where(inside, tf.gather(self._byte_of, ids), -1)
        is_byte = values >= 0
        size, low, high = tf.unstack(tf.gather(_FIRST, tf.maximum(values, 0)), axis=-1)
        second, third, fourth = (_shifted(values, -count) for count in (1, 2, 3))
        starts = is_byte & (size > 0)
        starts &= (size < 2) | ((second >= low) & (second <= high))
        for count, value in ((3, third), (4, fourth)):
            starts &= (size < count) | ((value >= 0x80) & (value <= 0xBF))
        size = tf.where(starts, size, 0)
        kept = size > 0
        for count in (1, 2, 3):
            kept |= _shifted(size, count) > count
        return inside & (kept | ~is_byte)


def _shifted(values: tf.Tensor, count: int) -> tf.Tensor:
    """Columns of `values` (R, L) moved to the right, or to the left; -1 where none is left."""
    padding = [[0, 0], [count, 0]] if count > 0 else [[0, 0], [0, -count]]
    padded = tf.pad(values, padding, constant_values=-1)
    return padded[:, :-count] if count > 0 else padded[:, -count:]
