"""The graph that TF Serving runs: raw strings in, raw strings out."""

import os
from collections.abc import Callable
from dataclasses import replace

import keras
import tensorflow as tf

from tf_transformer.decoding import NEG_INF, Hypotheses
from tf_transformer.inference.micro_batches import (
    max_compiled_rows,
    pad_to_shape,
    run_in_micro_batches,
)
from tf_transformer.inference.parallel_search import ParallelSearch, SearchIds
from tf_transformer.inference.search import Search, score_pairs, with_spare_hypotheses
from tf_transformer.inference.valid_text import WholeCharacters, clean, without_letters
from tf_transformer.kernels.gradient import without_own_gradients
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.text.special_ids import EOS_ID, PAD_ID
from tf_transformer.text.tokenizer import Tokenizer


class ServingGraph(tf.Module):
    """A tokenizer, a search and a model as one graph on string tensors.

    It contains core TensorFlow ops and tensorflow-text's SentencePiece ops only. Batches of any
    size are processed in micro-batches, which bounds memory; the outputs of a row do not depend on
    other rows. `truncated` marks rows that were longer than `max_source_length`, and rows whose
    best translation reached its length limit.

    Args:
        search: the search on ids; its configuration also bounds the micro-batches.
        tokenizer: its tokenizer.
        max_source_length: longest source, or given target, in tokens with the end token; longer
            ones are cut.
        jit_compile: whether XLA compiles the search, for a few shapes that all batches are padded
            to.
        output: name of the predicted text in the signatures.
        copies: whether a text without letters is its own prediction, with the score 0.

    A subclass for another form of text overrides `encode`, `encode_target`, `decode` and
    `endpoints`.
    """

    def __init__(
        self,
        search: Search,
        tokenizer: Tokenizer,
        max_source_length: int,
        jit_compile: bool,
        output: str = "prediction",
        copies: bool = False,
    ):
        super().__init__()
        # Imported here because training and translation do not need tensorflow-text.
        import tensorflow_text

        self.model = search.model
        self.config = search.config
        self._output = output
        self._copies = copies
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(tokenizer.model)
        self._whole_characters = WholeCharacters(tokenizer)
        self._max_source_length = max_source_length
        self._jit_compile = jit_compile
        if jit_compile:
            # XLA's product with the untransposed matrix takes up to three times as long, and
            # transposing it in each call takes as long as several steps. The export stores both.
            projection = self.model.output_embedding.projection()
            self._output_projection = tf.Variable(projection, trainable=False)
        spare = replace(search, config=with_spare_hypotheses(self.config))
        self._search = self._best = self._in_parts(spare)
        if self.config.num_hypotheses > 1 and not self.config.sampling:
            # The best hypothesis alone is found earlier.
            of_one = replace(search, config=replace(self.config, num_hypotheses=1))
            self._best = self._in_parts(of_one)

    def predict(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) to the predicted strings (B,), `score`, float32, and `truncated`, bool."""
        predictions, scores, truncated = self._hypotheses(text, self._best, count=1)
        return {
            self._output: predictions[:, 0],
            "score": scores[:, 0],
            "truncated": truncated,
        }

    def n_best(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) to predicted strings (B, N), best first, with `scores` and `truncated`.

        Where a search finds fewer than N, the others are empty with the score `NEG_INF`.
        """
        found = self._hypotheses(text, self._search, self.config.num_hypotheses)
        return dict(zip((f"{self._output}s", "scores", "truncated"), found, strict=True))

    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) and predictions (B,) to `score` and `log_probability`, float32 (B,)."""
        same = "expected as many targets as sources."
        tf.debugging.assert_equal(tf.size(source), tf.size(target), message=same)
        sources, cut = self._cut(self.encode(clean(source)))
        targets, target_cut = self._cut(self.encode_target(clean(target)))

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            pair = (_rows_of(sources, rows), _rows_of(targets, rows))
            return tuple(score_pairs(self.model, *pair, self.config.length_penalty))

        lengths = tf.maximum(_lengths(sources), _lengths(targets))
        nothing = tf.zeros(tf.shape(source))
        score, log_probability = run_in_micro_batches(
            run, lengths, self._max_rows, (nothing, nothing)
        )
        return {
            "score": score,
            "log_probability": log_probability,
            "truncated": tf.logical_or(cut, target_cut),
        }

    def _in_parts(self, search: Search) -> SearchIds:
        """The search of `parallel_batches` parts of a batch at a time."""
        whole = self._compiled(search)
        parts = self.config.parallel_batches
        return ParallelSearch(whole, parts) if parts > 1 else whole

    def _compiled(self, search: Search) -> SearchIds:
        """The search, compiled by XLA for few shapes if `jit_compile` is set."""
        if not self._jit_compile:
            return search
        compiled = tf.function(search.__call__, jit_compile=True, autograph=False)

        def search_padded(source: tf.Tensor) -> Hypotheses:
            source_in_shape = pad_to_shape(source, self._max_source_length)
            found = compiled(source_in_shape, output_projection=self._output_projection.value())
            return Hypotheses(*(field[: tf.shape(source)[0]] for field in found))

        return search_padded

    def _max_rows(self, length: tf.Tensor) -> tf.Tensor:
        return tf.clip_by_value(self.config.batch_tokens // length, 1, self.config.batch_size)

    def _hypotheses(self, text: tf.Tensor, search: SearchIds, count: int) -> tuple[tf.Tensor, ...]:
        """Predictions and scores (B, N), and whether a text or its prediction was cut (B,)."""
        text = clean(text)
        sources, cut = self._cut(self.encode(text))

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            texts_in = tf.gather(text, rows)
            found = self.search(search, _rows_of(sources, rows), texts_in)
            texts, scores = self.decode(found, texts_in), found.scores
            if self.config.distinct:
                texts, scores = _without_repeated(texts, scores)
            return texts[:, :count], scores[:, :count], _reached_limit(found)

        def max_rows(length: tf.Tensor) -> tf.Tensor:
            if self._jit_compile:
                return max_compiled_rows(length, self._max_source_length)
            return self._max_rows(length)

        lengths = _lengths(sources)
        searched = lengths >= self.model.shortest_source
        result = tf.fill((tf.size(text), count), "")
        if self._copies:
            copied = without_letters(text)
            searched, cut = searched & ~copied, cut & ~copied
            is_first = tf.range(count) == 0
            result = tf.where(copied[:, None] & is_first, text[:, None], result)
        score_of_none = tf.constant([0.0] + [NEG_INF] * (count - 1))
        batch = tf.shape(text)[0]
        of_none = (
            result,
            tf.tile(score_of_none[None], (batch, 1)),
            tf.zeros((batch,), tf.bool),
        )
        texts, scores, at_limit = run_in_micro_batches(
            run, tf.where(searched, lengths, 0), max_rows, of_none
        )
        return texts, scores, tf.logical_or(cut, at_limit)

    def search(self, search: SearchIds, ids: tf.Tensor, text: tf.Tensor) -> Hypotheses:
        """The result of a search for the ids (B, S) of strings (B,)."""
        return search(ids)

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings (B,), without the end token."""
        return self._tokenizer.tokenize(text)

    def encode_target(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of given predictions (B,), without the end token."""
        return self._tokenizer.tokenize(text)

    def decode(self, found: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        """The strings (B, N) of hypotheses for the strings (B,)."""
        strings = self._tokenizer.detokenize(self.text_ids(found))
        return tf.reshape(strings, tf.shape(found.lengths))

    def text_ids(self, found: Hypotheses) -> tf.RaggedTensor:
        """The ids of hypotheses that are text (B·N, None), without the end and half characters."""
        ids = tf.reshape(found.ids, (-1, tf.shape(found.ids)[2]))
        inside = tf.sequence_mask(tf.reshape(found.lengths, [-1]), tf.shape(ids)[1])
        inside = tf.logical_and(inside, tf.not_equal(ids, EOS_ID))
        return tf.ragged.boolean_mask(ids, self._whole_characters(ids, inside))

    def endpoints(self) -> dict[str, tuple[Callable[..., dict[str, tf.Tensor]], list[str]]]:
        """The signatures of the SavedModel: their functions and the names of their inputs."""
        return {
            "serving_default": (self.predict, ["text"]),
            "n_best": (self.n_best, ["text"]),
            "score": (self.score, ["source", "target"]),
        }

    def _cut(self, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """At most `max_source_length` ids with the end token, and whether ids were cut (B,)."""
        room = self._max_source_length - 1
        end = tf.fill(tf.stack([ids.nrows(), 1]), EOS_ID)
        return tf.concat([ids[:, :room], end], axis=1), ids.row_lengths() > room


def _without_repeated(texts: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first of equal texts of each row (B, N); then "" and `NEG_INF` for the repeated ones."""
    place = tf.range(tf.shape(texts)[1])
    earlier = place[None, :] < place[:, None]  # (N, N)
    equal = tf.equal(texts[:, :, None], texts[:, None, :])  # (B, N, N)
    repeated = tf.reduce_any(tf.logical_and(equal, earlier), axis=2)  # (B, N)
    order = tf.argsort(tf.cast(repeated, tf.int32), axis=1, stable=True)
    fields = tf.where(repeated, "", texts), tf.where(repeated, NEG_INF, scores)
    first, scores_of_first = (tf.gather(field, order, batch_dims=1) for field in fields)
    return first, scores_of_first


def _reached_limit(found: Hypotheses) -> tf.Tensor:
    """Whether the best hypothesis of each sentence has no end token (B,)."""
    has_end = tf.reduce_any(tf.equal(found.ids[:, 0], EOS_ID), axis=1)
    return tf.logical_and(found.lengths[:, 0] > 0, tf.logical_not(has_end))


@own_settings()
def write_saved_model(graph: ServingGraph, path: str | os.PathLike) -> None:
    """Writes the graph with its signatures; variables are stored once."""
    archive = keras.export.ExportArchive()
    archive.track(graph)  # without this a session finds neither variables nor tokenizer
    for signature, (function, inputs) in graph.endpoints().items():
        specs = [tf.TensorSpec((None,), tf.string, name=name) for name in inputs]
        archive.add_endpoint(signature, function, input_signature=specs)
    with without_own_gradients():  # traces the functions
        archive.write_out(str(path), verbose=False)


def _lengths(ids: tf.RaggedTensor) -> tf.Tensor:
    return tf.cast(ids.row_lengths(), tf.int32)


def _rows_of(ids: tf.RaggedTensor, rows: tf.Tensor) -> tf.Tensor:
    """Some rows (R, S), padded to the longest of them."""
    return tf.gather(ids, rows).to_tensor(PAD_ID)
