"""The words of a text that the training text of a model does not have.

Few models translate such a word right, and they are no less sure of it. `re` and RE2 read the
patterns alike.
"""

import functools
import re
from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf

from tf_transformer.text.capitals import NUMBERS
from tf_transformer.text.normalization import LETTERS, MARKS, literal_class_of

MOST = 2_000_000  # words of a training text that a run stores
# Letters of scripts without spaces: each counts as a word.
_WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
)
_BUCKETS = 2**31 - 1  # of hashes


def seen_words(texts: Iterable[str], before: Iterable[str] = ()) -> list[str]:
    """The distinct words of texts in lower case, and those `before`, sorted; [] if above `MOST`.

    Example:
        >>> seen_words(["Two houses.", "two A4 pages, my houses"])
        ['houses', 'my', 'pages', 'two']
    """
    words = set(before)
    rules, word = _patterns()
    for text in texts:
        text = text.lower()
        for pattern, replacement in rules:
            text = re.sub(pattern, replacement, text)
        words.update(text.split(" "))
        if len(words) > MOST:
            return []
    return sorted(filter(re.compile(word).fullmatch, words))


class UnseenWords:
    """Finds the words of texts that are not among some seen words, on tensors.

    A word has two letters or more, and no digits.

    Example:
        >>> unseen = UnseenWords(["two", "houses"])
        >>> unseen(tf.constant(["Two old houses, 5 A4 pages.", ""])).numpy().tolist()
        [b'old pages', b'']
    """

    def __init__(self, words: Sequence[str]):
        hashes = np.unique(_hashes(tf.constant(words)).numpy())
        self._hashes = np.append(hashes, np.int32(_BUCKETS))  # 4 bytes a word, and an end

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        """The unseen words of strings (B,), with a space between two: string (B,)."""
        text, (rules, word) = tf.strings.lower(text, "utf-8"), _patterns()
        for pattern, replacement in rules:
            text = tf.strings.regex_replace(text, pattern, replacement)
        words = tf.strings.split(text)
        hashes, table = _hashes(words.flat_values), tf.constant(self._hashes)
        seen = tf.equal(tf.gather(table, tf.searchsorted(table, hashes)), hashes)
        seen |= ~tf.strings.regex_full_match(words.flat_values, word)
        unseen = words.with_flat_values(tf.where(seen, "", words.flat_values))
        joined = tf.strings.reduce_join(unseen, axis=1, separator=" ")
        return tf.strings.strip(tf.strings.regex_replace(joined, " +", " "))


def _hashes(words: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.strings.to_hash_bucket_fast(words, _BUCKETS), tf.int32)


@functools.cache
def _patterns() -> tuple[tuple[tuple[str, str], ...], str]:
    """Replacements that put a space between any two words, and the pattern of a word."""
    letter, mark, number = map(literal_class_of, (LETTERS, MARKS, NUMBERS))
    rules = (
        (f"[^{letter}{mark}{number}_]+", " "),
        (f"(^|[^{letter}{mark}])[{mark}]+", r"\1"),  # marks without a letter
        (f"([{_WITHOUT_SPACES}][{mark}]*)", r" \1 "),
    )
    return rules, f"[{letter}][{letter}{mark}]+|[{_WITHOUT_SPACES}][{mark}]*"
