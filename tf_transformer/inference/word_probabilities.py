"""The probability of each word of a prediction, on tensors."""

from typing import Any

import tensorflow as tf

from tf_transformer.inference.search import token_log_probabilities
from tf_transformer.text.graph_tokenizer import GraphTokenizer
from tf_transformer.text.normalization import WHITE_SPACE

WORD_PROBABILITIES = "word_probabilities"  # the name of the outputs of signatures


def word_probabilities(
    model: Any, tokenizer: GraphTokenizer, source: tf.Tensor, ids: tf.Tensor
) -> tf.Tensor:
    """The probabilities of the words of predictions, with a space between two: string (B, N).

    Words are those of `str.split()`. The probability of a word is the product of its tokens'
    probabilities. The end token counts with the last word, so the product over the words is the
    probability that the model gives the prediction. A search does not store the probabilities of
    tokens: a run of the model over texts and predictions gives them.

    Args:
        model: a function from (source, target shifted right) to logits, like the Transformer.
        tokenizer: the tokenizer of predictions.
        source: ids of the texts, int32 (B, S).
        ids: ids of the predictions, int32 (B, N, L), each with the end id or without, then padding.
    """

    def of_place(of_texts: tf.Tensor) -> tf.Tensor:
        word_of, counts = _words_of_tokens(tokenizer, of_texts)  # (B, L), (B,)
        log_p = token_log_probabilities(model, source, of_texts)  # (B, L)
        is_in = word_of[..., None] == tf.range(tf.reduce_max(counts))  # (B, L, W)
        of_words = tf.reduce_sum(tf.where(is_in, log_p[..., None], 0.0), axis=1)  # (B, W)
        shown = tf.strings.as_string(tf.exp(of_words), precision=6, shortest=True)
        rows = tf.RaggedTensor.from_tensor(shown, lengths=counts)
        return tf.strings.reduce_join(rows, axis=1, separator=" ")

    # One hypothesis of each text after another: the logits (B, L, V) of all take much memory.
    places = tf.transpose(ids, (1, 0, 2))
    found = tf.map_fn(
        of_place,
        places,
        fn_output_signature=tf.TensorSpec((None,), tf.string),
        parallel_iterations=1,
    )
    return tf.transpose(found)


def of_copies(text: tf.Tensor) -> tf.Tensor:
    """The probabilities of the words of strings that are their own predictions: all are 1."""
    words = tf.strings.regex_replace(text, f"[^{WHITE_SPACE[1:-1]}]+", "1")
    return tf.strings.strip(tf.strings.regex_replace(words, f"{WHITE_SPACE}+", " "))


def _words_of_tokens(tokenizer: GraphTokenizer, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The index of the word of each token (B, L), and the number of words of each row (B,).

    The token that adds the first byte of a word begins it, and so do tokens before it that add only
    white space or a part of a character. The end token and padding belong to the last word.
    """
    rows, longest = tf.unstack(tf.shape(ids))
    lengths = tf.tile(tf.range(1, longest + 1), [rows])
    starts = tokenizer.text_ids(tf.repeat(ids, longest, axis=0), lengths)  # (B·L, None)
    texts = tf.reshape(tokenizer.decode(starts), (rows, longest))  # after each token
    bytes_of_words = tf.strings.length(tf.strings.regex_replace(texts, WHITE_SPACE, ""))
    before = tf.pad(bytes_of_words[:, :-1], [[0, 0], [1, 0]])
    words = tf.strings.split(tf.strings.regex_replace(texts[:, -1], WHITE_SPACE, " "))
    counts = tf.cast(words.row_lengths(), tf.int32)
    ends = tf.cumsum(tf.strings.length(words.to_tensor("")), axis=1)  # (B, W)
    word_of = tf.searchsorted(ends, before, side="right")
    return tf.minimum(word_of, tf.maximum(counts - 1, 0)[:, None]), counts
