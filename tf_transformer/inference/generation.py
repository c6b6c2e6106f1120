"""The graph of a language model: prompts in, continuations out; texts in, log-probabilities out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.micro_batches import run_in_micro_batches
from tf_transformer.inference.parallel_search import SearchIds
from tf_transformer.inference.search import Search, log_probabilities, with_spare_hypotheses
from tf_transformer.inference.text_graph import ServingGraph
from tf_transformer.inference.valid_text import clean
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID


class GenerationGraph(ServingGraph):
    """A language model as one graph on string tensors; see `ServingGraph`.

    Of a long prompt the last `max_source_length` tokens count. `score` has no longest text.
    """

    def __init__(self, search: Search, codec: Codec, *options: Any):
        super().__init__(search, codec, *options)
        tokenizer = codec["text"]
        self._boundary = tokenizer.boundary
        self._size_of_boundary = len(tokenizer.boundary.encode("utf-8"))
        self._space_id = tokenizer.space_id
        # Each of its calls has other rows, which a compiled search or one in parts does not take.
        self._after_space = replace(search, config=with_spare_hypotheses(self.config))
        text = tf.TensorSpec((None,), tf.string)  # one function for two signatures
        self._generate = tf.function(self.predict, input_signature=[text], autograph=False)

    def endpoints(self) -> dict[str, tuple[Callable[..., dict[str, tf.Tensor]], list[str]]]:
        return {
            "serving_default": (self._generate, ["text"]),
            "generate": (self._generate, ["text"]),
            "n_best": (self.n_best, ["text"]),
            "score": (self.score_text, ["text"]),
        }

    def search(self, search: SearchIds, ids: tf.Tensor, text: tf.Tensor) -> Hypotheses:
        """Where a prompt ends in a space, its continuation begins with a new word."""
        if not self._after_space.word_starts:
            return search(ids)
        ends_in_space = self._ends_in_space(text)
        prefix = tf.where(ends_in_space, BOS_ID, PAD_ID)[:, None]
        return tf.cond(
            tf.reduce_any(ends_in_space),
            lambda: self._after_space(ids, prefix),
            lambda: search(ids),
        )

    def _ends_in_space(self, text: tf.Tensor) -> tf.Tensor:
        """As `Tokenizer.ends_in_space`, for strings (B,)."""
        ids = self._tokenizer.tokenize(tf.strings.join([text, self._boundary]))
        before = ids[:, -1 - self._size_of_boundary : -self._size_of_boundary]
        is_space = tf.equal(before.to_tensor(PAD_ID)[:, 0], self._space_id)
        return tf.logical_and(is_space, tf.not_equal(text, ""))

    def decode(self, found: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        """The strings (B, N) that follow the prompts (B,): whole texts without the prompts."""
        batch, count = tf.unstack(tf.shape(found.lengths))
        prompts = tf.gather(self.encode(text), tf.repeat(tf.range(batch), count))
        whole = self._tokenizer.detokenize(tf.concat([prompts, self.text_ids(found)], axis=1))
        start = tf.strings.length(self._tokenizer.detokenize(prompts))
        strings = tf.strings.substr(whole, start, tf.strings.length(whole) - start)
        strings = tf.reshape(strings, (batch, count))
        if not self._after_space.word_starts:
            return strings
        without_space = tf.strings.regex_replace(strings, "^ ", "")
        return tf.where(self._ends_in_space(text)[:, None], without_space, strings)

    def score_text(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) to `log_probability`, float32 (B,), and `tokens`, int32 (B,)."""
        ids = self.encode(clean(text))
        end = tf.fill(tf.stack([ids.nrows(), 1]), EOS_ID)
        ids = tf.concat([ids, end], axis=1)
        size, stride = self._max_source_length, max(1, self._max_source_length // 2)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        counts = 1 + tf.maximum(0, -(-(lengths - size) // stride))  # windows of each text
        texts = tf.repeat(tf.range(tf.size(counts)), counts)
        number = tf.ragged.range(counts).flat_values
        begin = tf.cast(ids.row_starts(), tf.int32)
        starts, limit = number * stride, tf.gather(lengths, texts)
        first = tf.gather(begin, texts)
        places = tf.ragged.range(first + starts, first + tf.minimum(starts + size, limit))
        windows = tf.gather(ids.flat_values, places)
        before = tf.gather(ids.flat_values, tf.maximum(first + starts - 1, 0))
        before = tf.where(number > 0, before, BOS_ID)
        scored_from = tf.where(number > 0, size - stride, 0)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            inputs = (tf.gather(before, rows), tf.gather(windows, rows).to_tensor(PAD_ID))
            return (log_probabilities(self.model, *inputs, tf.gather(scored_from, rows)),)

        window_lengths = tf.cast(windows.row_lengths(), tf.int32)
        nothing = tf.zeros(tf.shape(texts), tf.float64)
        (totals,) = run_in_micro_batches(run, window_lengths, self._max_rows, (nothing,))
        total = tf.math.unsorted_segment_sum(totals, texts, tf.size(counts))
        return {"log_probability": tf.cast(total, tf.float32), "tokens": lengths}

    def _cut(self, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The last `max_source_length` ids with the end token, and whether ids were cut (B,)."""
        room = self._max_source_length - 1
        end = tf.fill(tf.stack([ids.nrows(), 1]), EOS_ID)
        return tf.concat([ids[:, -room:] if room else ids[:, :0], end], axis=1), (
            ids.row_lengths() > room
        )
