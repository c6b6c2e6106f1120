"""Sentences of texts as TensorFlow operations, with the rules of `splitting`."""

import tensorflow as tf

from tf_transformer.text.splitting import (
    BLOCK_MARK,
    END,
    LINE_ENDS,
    MARK,
    MARKS,
    MERGES,
    Marks,
    Rules,
    boundaries,
)


def split_sentences(text: tf.Tensor, language: str = "", kept: str = "") -> tf.RaggedTensor:
    """Divides strings (B,), valid UTF-8 without NUL, as `SentenceSplitter.split`: string (B, None).

    Example:
        >>> split_sentences(tf.constant(["Tom left. Mary stayed."]), "en").to_list()
        [[b'Tom left.', b' ', b'Mary stayed.']]
    """
    pieces = tf.strings.split(marked(marked(text, MARKS, kept), MERGES), MARK)
    words, spaces = pieces[:, ::2], pieces[:, 1::2]
    places = tf.strings.join(
        [words[:, :-1].flat_values, spaces.flat_values, words[:, 1:].flat_values], MARK
    )
    return split_at(words, spaces, _first_match(places, boundaries(language)))


def has_several_sentences(text: tf.Tensor) -> tf.Tensor:
    """Which strings (B,) have a line with several sentences, in any language: bool (B,).

    Example:
        >>> has_several_sentences(["Tom left. Mary stayed.", "Mr. T. Smith"]).numpy().tolist()
        [True, False]
    """
    may_have = tf.strings.regex_full_match(text, f"(?s).*(?:{END}).*")  # few do

    def has() -> tf.Tensor:
        lines = tf.strings.regex_replace(tf.where(may_have, text, ""), f"[{LINE_ENDS}]", "\n")
        lines = tf.strings.split(lines, "\n")
        sentences = split_sentences(lines.flat_values)[:, ::2]
        counts = tf.reduce_sum(tf.cast(tf.not_equal(sentences, ""), tf.int32), axis=1)
        return tf.reduce_any(lines.with_flat_values(counts > 1), axis=1)

    return tf.cond(tf.reduce_any(may_have), has, lambda: may_have)


def marked(text: tf.Tensor, marks: Marks, kept: str = "") -> tf.Tensor:
    """Replaces patterns in strings (B,) outside of `kept`: string (B,); see `splitting.marked`."""
    if kept:
        pieces = tf.strings.split(
            tf.strings.regex_replace(text, f"({kept})", rf"{MARK}\1{MARK}"), MARK
        )
        is_kept = tf.ragged.range(pieces.row_lengths()).flat_values % 2 == 1
        kept_values = tf.strings.regex_replace(pieces.flat_values, *BLOCK_MARK)
        values = tf.where(is_kept, kept_values, marked(pieces.flat_values, marks))
        return tf.strings.reduce_join(pieces.with_flat_values(values), axis=1)
    for pattern, replacement in marks:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def split_at(words: tf.RaggedTensor, spaces: tf.RaggedTensor, is_end: tf.Tensor) -> tf.RaggedTensor:
    """Joins words (B, None) with the spaces between them, except at some spaces: string (B, None).

    The items are a text, the space after it, the next text, and so on. `is_end`, bool, has a value
    for each of the flat values of `spaces`.
    """
    marked = tf.strings.join([MARK, spaces.flat_values, MARK])
    spaces = spaces.with_flat_values(tf.where(is_end, marked, spaces.flat_values))
    spaces = tf.concat([spaces, tf.fill([words.nrows(), 1], "")], axis=1)  # after the last word
    joined = words.with_flat_values(tf.strings.join([words.flat_values, spaces.flat_values]))
    return tf.strings.split(tf.strings.reduce_join(joined, axis=1), MARK)


def _first_match(strings: tf.Tensor, rules: Rules) -> tf.Tensor:
    """The values of the first rules that match strings (P,), else False: bool (P,)."""
    values = tf.zeros(tf.shape(strings), tf.bool)
    for pattern, value in reversed(rules):
        values = tf.where(tf.strings.regex_full_match(strings, pattern), value, values)
    return values
