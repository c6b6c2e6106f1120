"""Continues and scores texts with a language model, in Python and on tensors."""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.decoding.coverage import require_no_penalty
from tf_transformer.errors import InputError
from tf_transformer.inference import predictor, text_graph
from tf_transformer.inference.inputs import INPUTS, TERMS, Input, as_texts
from tf_transformer.inference.search import Search, log_probabilities, penalty_of
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.inference.search_texts import Pairs, Prepared
from tf_transformer.inference.text_predictor import TextPredictor, read_ids
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings, clean
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
    # A prompt is not translated, so it has no terms.
    optional_inputs: ClassVar[tuple[Input, ...]] = tuple(x for x in INPUTS if x is not TERMS)

    def __init__(self, search: Search, codec: Codec, *options: Any):
        super().__init__(search, codec, *options)
        self.tokenizer = self.codec["text"]

    def endpoints(self) -> text_graph.Endpoints:
        """The signatures `serving_default`, `generate` (the same), `n_best` and `score`."""
        own = {"generate": (self.predict, ["text"]), "score": (self.score_text, ["text"])}
        return super().endpoints() | own

    def cut(self, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """`TextGraph.cut` to the last ids."""
        room = self.max_source_length - 1
        starts = tf.maximum(ids.row_starts(), ids.row_limits() - room)
        return text_graph.with_end(ids, starts, room), ids.row_lengths() > room

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

    def read_pairs(self, source: tf.Tensor, target: tf.Tensor) -> Pairs:
        """Encodes prompts, without an end token, and their continuations; none of them is cut."""
        prompt = clean(source)
        rests = self.tokenizer.encode_continuation(self.continuation(prompt, target))
        return (
            self.tokenizer.encode(prompt),
            text_graph.with_end(rests),
            tf.zeros(tf.shape(source), tf.bool),
        )

    def windows_of_texts(self, text: tf.Tensor) -> tuple[Windows, tf.Tensor]:
        """The windows of strings (B,), and their numbers of tokens with the end token, (B,)."""
        ids = text_graph.with_end(self.tokenizer.encode(clean(text)))
        lengths = text_graph.lengths_of(ids)
        return self.windows(ids, tf.zeros_like(lengths)), lengths

    def windows_of_rests(self, prompt: tf.Tensor, rest: tf.Tensor) -> tuple[Windows, tf.Tensor]:
        """The windows of continuations (B,) of prompts (B,), and their numbers of tokens, (B,)."""
        prompts, rests, _ = self.read_pairs(prompt, rest)
        windows = self.windows(tf.concat([prompts, rests], axis=1), text_graph.lengths_of(prompts))
        return windows, text_graph.lengths_of(rests)

    def windows(self, ids: tf.RaggedTensor, scored_from: tf.Tensor) -> Windows:
        """Divides texts (B, None) into windows of `max_source_length` ids; each id is scored once.

        A window starts half a window after the previous window. Each id beyond the first window is
        therefore predicted from at least half a window. `scored_from`, int32 (B,), is the index of
        the first scored id of each text.
        """
        size, stride = self.max_source_length, max(1, self.max_source_length // 2)
        lengths = text_graph.lengths_of(ids)
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

    def score_text(self, text: tf.Tensor) -> text_graph.Outputs:
        """For strings (B,), `log_probability`, float32 (B,), in nats; and `tokens`, int32 (B,)."""
        windows, lengths = self.windows_of_texts(text)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            before, scored_from = (
                tf.gather(field, rows) for field in (windows.before, windows.scored_from)
            )
            ids = text_graph.rows_of(windows.ids, rows)
            return (log_probabilities(self.model, before, ids, scored_from),)

        nothing = tf.zeros(tf.shape(windows.text), tf.float64)
        (totals,) = self.in_micro_batches(run, text_graph.lengths_of(windows.ids), (nothing,))
        total = tf.math.unsorted_segment_sum(totals, windows.text, tf.size(lengths))
        return {"log_probability": tf.cast(total, tf.float32), "tokens": lengths}


class TextScore(NamedTuple):
    """The log-probability of a text, and its number of tokens."""

    log_probability: float  # sum over the tokens, nats
    tokens: int  # with the end token


class TextGenerator(TextPredictor):
    """Continues prompts; an empty text is a prompt, too.

    The whole text is prompt + prediction: a prediction that begins with a new word begins with a
    space. After a prompt that ends in a space, a new word follows. A prompt longer than
    `max_source_length` is cut to its last tokens. The constraints of a `DecodeConfig` apply to
    predictions only, which may repeat the prompt. The model is a `LanguageModel`. Arguments are as
    in `TextPredictor`, without `coverage_penalty`.

    Example:
        >>> from tf_transformer.models.language_model import LanguageModel
        >>> from tf_transformer.text.tokenizer import BYTES, Tokenizer
        >>> model, codec = LanguageModel(BYTES), Codec(Tokenizer.train([], BYTES))
        >>> model.build()
        >>> generator = TextGenerator(model, codec, DecodeConfig())
        >>> generator.score_texts(["Tom is"])[0].tokens
        7
    """

    graph_type = GenerationGraph
    output = "continuation"
    _graph: GenerationGraph

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        require_no_penalty(config.coverage_penalty)
        super().__init__(model, codec, config)
        row = tf.TensorSpec((None,), tf.int32)
        self._windows_of_texts = text_graph.Traced(self._graph.windows_of_texts, text_graph.STRINGS)
        self._windows_of_rests = text_graph.Traced(
            self._graph.windows_of_rests, text_graph.STRINGS, text_graph.STRINGS
        )
        self._log_probabilities = text_graph.Traced(
            functools.partial(log_probabilities, model), row, text_graph.IDS, row
        )

    def _read(self, call: predictor.Call) -> Prepared:
        """Encodes prompts and prefixes, which must fit into the positions of the model."""
        inputs = super()._read(call)
        most = self.model.position.max_length
        if most and "prefix" in inputs.problem:
            prefixes = inputs.problem["prefix"].lists()
            rows = zip(call.texts, inputs.ids.lists(), prefixes, strict=True)
            for text, ids, prefix in rows:
                if len(ids) + np.count_nonzero(prefix != BOS_ID) > most:
                    raise InputError(
                        f"the prompt {text!r} and its prefix have more than model.max_length "
                        f"({most}) tokens. Shorten one of them."
                    )
        return inputs

    def _examples(self, kind: Input, texts: list[str], predictions: list[str]) -> list[str]:
        """Values of an input for the check of signatures, where the model has positions left."""
        most = self.model.position.max_length or np.inf
        rows = zip(texts, super()._examples(kind, texts, predictions), strict=True)
        encode = self.codec["text"].encode
        return [
            value if len(encode(text)) + len(encode(value)) <= most else "" for text, value in rows
        ]

    def _scores(self, call: predictor.Call) -> list[predictor.PairScore]:
        """The scores of given continuations, with the end token; texts may have any length."""
        both = map(as_strings, (call.texts, call.predictions))
        windows, lengths = self._windows_of_rests(*both)
        totals = self._score_windows(windows, call)
        alpha, offset = penalty_of(self.config)
        return [
            predictor.PairScore(total / ((offset + length) / (offset + 1)) ** alpha, total)
            for total, length in zip(totals, lengths.numpy().tolist(), strict=True)
        ]

    def attention_batches(self, call: predictor.Call) -> predictor.Attentions:
        """The decoder's attention to prompts with predictions."""
        prompts, rests, _ = self._pairs(call)
        longest = self.max_source_length
        rows = [[*pair[0], *pair[1]][-longest:] for pair in zip(prompts, rests, strict=True)]
        for indices in self._batches(list(map(len, rows))):
            ids = predictor.pad([rows[i] for i in indices])
            read = read_ids(ids)
            weights = predictor.by_position(self.model.decoder, self.model.run(read).attention)
            yield indices, [predictor.BatchAttention("decoder", ids, read, weights)]

    def score_texts(
        self, texts: Sequence[str], progress: predictor.Progress = predictor.no_progress
    ) -> list[TextScore]:
        """The log-probability of each text with its end token.

        A text longer than `max_source_length` tokens is scored in windows of this size. A window
        starts half a window after the previous window. Each token beyond the first window is
        therefore predicted from at least half a window. An empty text is the end token alone.
        """
        texts = as_texts(texts)
        windows, lengths = self._windows_of_texts(as_strings(texts))
        totals = self._score_windows(windows, predictor.Call(texts, progress))
        return list(map(TextScore, totals, lengths.numpy().tolist()))

    def _score_windows(self, windows: Windows, call: predictor.Call) -> list[float]:
        """The log-probability of each text, summed over its windows."""
        ids = windows.ids.lists()
        text, before, scored_from = (
            field.numpy() for field in (windows.text, windows.before, windows.scored_from)
        )
        count = len(call.texts)
        totals, remaining = np.zeros(count), np.bincount(text, minlength=count)

        def run(indices: list[int]) -> np.ndarray:
            rows = predictor.pad([ids[i] for i in indices])
            return self._log_probabilities(before[indices], rows, scored_from[indices]).numpy()

        lengths = list(map(len, ids))
        for indices, log_p in self._in_parallel(run, self._batches(lengths)):
            of_text = text[indices]
            np.add.at(totals, of_text, log_p)
            np.subtract.at(remaining, of_text, 1)
            done = (remaining[np.unique(of_text)] == 0).sum()
            call.progress(int(done), sum(lengths[i] for i in indices))
        return totals.tolist()

    def signatures(self, texts: Sequence[str]) -> dict[str, predictor.SignatureCase]:
        """The signatures of the SavedModel; `score` takes whole texts, as in `score_texts`."""
        cases = super().signatures(texts)
        scores = self.score_texts(texts)
        totals, lengths = [x.log_probability for x in scores], [x.tokens for x in scores]
        numbers: dict[str, list] = {"log_probability": totals, "tokens": lengths}
        return cases | {
            "generate": cases["serving_default"],
            "score": predictor.SignatureCase({"text": list(texts)}, numbers),
        }
