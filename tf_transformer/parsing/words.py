"""The words of sentences: single spaces, escaped brackets, and tags of punctuation."""

import re

import tensorflow as tf

from tf_transformer.text.normalization import WHITE_SPACE

SPACES = f"{WHITE_SPACE}+"  # readers of bracket files divide words there, too
# Brackets as in the treebank. SentencePiece's space inside a word would start a new word.
ESCAPES = {
    **{r"\(": "-LRB-", r"\)": "-RRB-", r"\[": "-LSB-", r"\]": "-RSB-"},
    **{r"\{": "-LCB-", r"\}": "-RCB-", "\u2581": "_"},
}
# EVALB deletes words by these tags.
PUNCTUATION = {
    **{",": ",", r"[.?!]": ".", r":|;|--?|\.\.\.": ":"},
    **{r"``?": "``", "''": "''"},
}
TAG = "XX"  # the tag of all other words (Vinyals et al. 2015)


def normalize(sentences: tf.Tensor) -> tf.Tensor:
    """Escapes the brackets of sentences (B,), and makes single spaces between their words."""
    for pattern, word in ESCAPES.items():
        sentences = tf.strings.regex_replace(sentences, pattern, word)
    return tf.strings.regex_replace(tf.strings.regex_replace(sentences, SPACES, " "), "^ | $", "")


def leaf(word: str) -> str:
    """Writes a word with its tag in brackets.

    Example:
        >>> leaf("dog"), leaf("!")
        ('(XX dog)', '(. !)')
    """
    tags = (tag for pattern, tag in PUNCTUATION.items() if re.fullmatch(pattern, word))
    return f"({next(tags, TAG)} {word})"


def leaf_in_graph(words: tf.Tensor) -> tf.Tensor:
    """Like `leaf`, for a string tensor of any shape."""
    tags = tf.fill(tf.shape(words), TAG)
    for pattern, tag in PUNCTUATION.items():
        tags = tf.where(tf.strings.regex_full_match(words, pattern), tag, tags)
    return tf.strings.join(["(", tags, " ", words, ")"])
