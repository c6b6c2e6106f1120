"""Continuations of prompts, and log-probabilities of texts, on tensors."""

from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.search import Search, log_probabilities
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.inference.text_graph import Endpoints, Outputs, lengths_of, rows_of, with_end
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import clean
from tf_transformer.text.special_ids import BOS_ID


class Windows(NamedTuple):
    """Windows of texts; the windows of a text follow one another."""

    text: tf.Tensor  # int32 (W,): index of the text
    before: tf.Tensor  # int32 (W,): the id before the window
    ids: tf.RaggedTensor  # int32 (W, None)
    scored_from: tf.Tensor  # int32 (W,): index of the first id whose score counts


class GenerationGraph(SearchGraph):
    """A language model on string tensors; see `SearchGraph`.

    A long prompt is cut to its last `max_source_length` tokens. `score` takes texts of any length.
    """

    shortest_source: ClassVar[int] = 1

    def __init__(self, search: Search, codec: Codec, *options: Any):
        super().__init__(search, codec, *options)
        self.tokenizer = self.codec["text"]

    def endpoints(self) -> Endpoints:
        """The signatures `serving_default`, `generate` (the same), `n_best` and `score`."""
        own = {"generate": (self.predict, ["text"]), "score": (self.score_text, ["text"])}
        return super().endpoints() | own

    def cut(self, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """`TextGraph.cut` to the last ids."""
        room = self.max_source_length - 1
        starts = tf.maximum(ids.row_starts(), ids.row_limits() - room)
        return with_end(ids, starts, room), ids.row_lengths() > room

    def encode_prefix(self, text: tf.Tensor, prefix: tf.Tensor | None) -> tf.RaggedTensor | None:
        if prefix is None:
            if not self.whole_search.word_starts:
                return None
            prefix = tf.fill(tf.shape(text), "")
        prefix = self.continuation(text, prefix)
        return self.open_words(
            self.tokenizer.encode_continuation(prefix),
            self.tokenizer.ends_in_space(tf.strings.join([text, prefix])),
        )

    def continuation(self, prompt: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Adds the space before the first word to strings (B,) that follow prompts (B,)."""
        begins_word = self.tokenizer.ends_in_space(prompt)
        if self.tokenizer.line_starts:
            begins_word |= self.tokenizer.encode(prompt).row_lengths() == 0
        return tf.where(begins_word & tf.not_equal(text, ""), tf.strings.join([" ", text]), text)

    def decode(self, hypotheses: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        """The continuations (B, N) of prompts (B,): the whole texts without the prompts."""
        batch, count = tf.unstack(tf.shape(hypotheses.lengths))
        prompts = tf.gather(self.tokenizer.encode(text), tf.repeat(tf.range(batch), count))
        texts = self.tokenizer.decode(tf.concat([prompts, self.text_ids(hypotheses)], axis=1))
        start = tf.strings.length(self.tokenizer.decode(prompts))
        strings = tf.strings.substr(texts, start, tf.strings.length(texts) - start)
        strings = tf.reshape(strings, (batch, count))
        without_space = tf.strings.regex_replace(strings, "^ ", "")
        return tf.where(self.tokenizer.ends_in_space(text)[:, None], without_space, strings)

    def read_pairs(
        self, source: tf.Tensor, target: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        """Encodes prompts and their continuations, uncut.

        Returns:
            ids of the prompts, int32 (B, None), without an end token; ids of the continuations with
            the end token; and False for each pair, bool (B,).
        """
        prompt = clean(source)
        rests = self.tokenizer.encode_continuation(self.continuation(prompt, target))
        return self.tokenizer.encode(prompt), with_end(rests), tf.zeros(tf.shape(source), tf.bool)

    def windows_of_texts(self, text: tf.Tensor) -> tuple[Windows, tf.Tensor]:
        """The windows of strings (B,), and their numbers of tokens with the end token, (B,)."""
        ids = with_end(self.tokenizer.encode(clean(text)))
        lengths = lengths_of(ids)
        return self.windows(ids, tf.zeros_like(lengths)), lengths

    def windows_of_rests(self, prompt: tf.Tensor, rest: tf.Tensor) -> tuple[Windows, tf.Tensor]:
        """The windows of continuations (B,) of prompts (B,), and their numbers of tokens, (B,)."""
        prompts, rests, _ = self.read_pairs(prompt, rest)
        windows = self.windows(tf.concat([prompts, rests], axis=1), lengths_of(prompts))
        return windows, lengths_of(rests)

    def windows(self, ids: tf.RaggedTensor, scored_from: tf.Tensor) -> Windows:
        """Divides texts (B, None) into windows of `max_source_length` ids; each id is scored once.

        A window starts half a window after the previous window. Each id beyond the first window is
        therefore predicted from at least half a window. `scored_from`, int32 (B,), is the index of
        the first scored id of each text.
        """
        size, stride = self.max_source_length, max(1, self.max_source_length // 2)
        lengths = lengths_of(ids)
        counts = 1 + tf.maximum(0, -(-(lengths - size) // stride))  # windows of each text
        text = tf.repeat(tf.range(tf.size(counts)), counts)
        number = tf.ragged.range(counts).flat_values
        start = number * stride
        length = tf.minimum(size, tf.gather(lengths, text) - start)
        context = tf.where(number > 0, size - stride, 0)
        context = tf.maximum(context, tf.gather(scored_from, text) - start)
        counted = context < length
        text, number, start, length, context = (
            tf.boolean_mask(field, counted) for field in (text, number, start, length, context)
        )
        first = tf.gather(tf.cast(ids.row_starts(), tf.int32), text) + start
        before = tf.gather(ids.flat_values, tf.maximum(first - 1, 0))
        places = tf.ragged.range(first, first + length)
        of_windows = places.with_flat_values(tf.gather(ids.flat_values, places.flat_values))
        return Windows(text, tf.where(number > 0, before, BOS_ID), of_windows, context)

    def score_text(self, text: tf.Tensor) -> Outputs:
        """For strings (B,), `log_probability`, float32 (B,), in nats; and `tokens`, int32 (B,)."""
        windows, lengths = self.windows_of_texts(text)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            before, scored_from = (
                tf.gather(field, rows) for field in (windows.before, windows.scored_from)
            )
            ids = rows_of(windows.ids, rows)
            return (log_probabilities(self.model, before, ids, scored_from),)

        nothing = tf.zeros(tf.shape(windows.text), tf.float64)
        (totals,) = self.in_micro_batches(run, lengths_of(windows.ids), (nothing,))
        total = tf.math.unsorted_segment_sum(totals, windows.text, tf.size(lengths))
        return {"log_probability": tf.cast(total, tf.float32), "tokens": lengths}
