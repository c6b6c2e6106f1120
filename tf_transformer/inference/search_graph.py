"""Texts to texts by a search, on tensors."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, NamedTuple

import tensorflow as tf

from tf_transformer.decoding import NEG_INF, Hypotheses
from tf_transformer.decoding.step_logits import transposed, with_transposed
from tf_transformer.inference.micro_batches import (
    max_compiled_rows,
    pad_to_shape,
    run_in_micro_batches,
)
from tf_transformer.inference.parallel_search import ParallelSearch, SearchIds
from tf_transformer.inference.search import Score, Search, score_pairs, with_spare_hypotheses
from tf_transformer.inference.text_graph import Outputs, TextGraph, lengths_of, rows_of
from tf_transformer.inference.traced import IDS, Traced
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import clean, without_letters
from tf_transformer.text.special_ids import BOS_ID, EOS_ID


class Inputs(NamedTuple):
    """Texts as a search takes them."""

    text: tf.Tensor  # string (B,), valid UTF-8; blank ones are empty
    ids: tf.RaggedTensor  # int32 (B, None), the end token last
    cut: tf.Tensor  # bool (B,): whether the text was longer than `max_source_length`
    lengths: tf.Tensor  # int32 (B,): number of ids; 0 for texts that are not searched
    copies: tf.Tensor  # string (B,): the predictions for these
    prefix: tf.RaggedTensor | None  # int32 (B, None), as `Search` takes it


class Predictions(NamedTuple):
    """The predictions for texts, best first.

    Where a search found fewer than N, the others are empty with the score `NEG_INF`.
    """

    texts: tf.Tensor  # string (B, N)
    scores: tf.Tensor  # float32 (B, N)
    at_limit: tf.Tensor  # bool (B,): whether the best one has no end
    tokens: tf.Tensor  # int32 (B,), of the best one, with the end token


class SearchGraph(TextGraph):
    """A codec, a search and a model on string tensors; see `TextGraph`.

    `truncated` of a signature marks rows that were longer than `max_source_length`, which `cut`
    marks, too, and rows whose best prediction reached its length limit.

    Args:
        search: the search on ids; its configuration also bounds the micro-batches.
        codec: its tokenizers.
        max_source_length: longest source, or given target, in tokens with the end token; longer
            ones are cut.
        jit_compile: whether XLA compiles the search of the signatures, for a few shapes that all
            batches are padded to.
        output: name of the predicted text in the signatures.
        copies: whether a text without letters is its own prediction, with the score 0.

    Attributes:
        shortest_source: the fewest tokens of a text, with the end token, that is searched.
        whole_search: the search of `config.num_hypotheses` and spare ones, also after prefixes.
        search: `whole_search` without prefixes as one graph, for Python and the signatures.

    A subclass for another form of text overrides `encode`, `encode_target`, `encode_prefix`,
    `decode` and `endpoints`.
    """

    shortest_source: ClassVar[int] = 2

    def __init__(
        self,
        search: Search,
        codec: Codec,
        max_source_length: int,
        jit_compile: bool,
        output: str = "prediction",
        copies: bool = False,
    ):
        super().__init__(search.model, codec, search.config, max_source_length)
        self._output = output
        self._copies = copies
        self._jit_compile = jit_compile
        if jit_compile:
            # XLA's product with the untransposed matrix takes up to three times as long, and
            # transposing it in each call takes as long as several steps. The export stores both.
            self._matrix = tf.Variable(transposed(self.model.output_embedding), trainable=False)
        self.whole_search = replace(search, config=with_spare_hypotheses(self.config))
        self.search = self._compiled(self.whole_search)
        self._all = self._best = self._in_parts(self.search)
        if self.config.num_hypotheses > 1 and not self.config.sampling:
            # The best hypothesis alone is found earlier.
            of_one = replace(search, config=replace(self.config, num_hypotheses=1))
            self._best = self._in_parts(self._compiled(of_one))

    def read(self, text: tf.Tensor, prefix: tf.Tensor | None = None) -> Inputs:
        """Texts (B,), and the starts of their predictions (B,), as a search takes them."""
        text = clean(text)
        ids, cut = self.encode(text)
        lengths = lengths_of(ids)
        searched = lengths >= self.shortest_source
        copies = tf.fill(tf.shape(text), "")
        if self._copies:
            copied = without_letters(text)
            if prefix is not None:
                copied &= tf.equal(prefix, "")
            searched, cut = searched & ~copied, cut & ~copied
            copies = tf.where(copied, text, copies)
        prefix_ids = self.encode_prefix(text, prefix)
        return Inputs(text, ids, cut, tf.where(searched, lengths, 0), copies, prefix_ids)

    def encode(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Ids of clean strings (B,), the end token last, and whether each was cut (B,)."""
        return self.cut(self.codec["source"].encode(text))

    def encode_target(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The same of given predictions (B,)."""
        return self.cut(self.codec["target"].encode(clean(text)))

    def encode_prefix(self, text: tf.Tensor, prefix: tf.Tensor | None) -> tf.RaggedTensor | None:
        """The first ids of the predictions for strings (B,); None: there are none.

        After a space the start id stands for any piece that begins a word.
        """
        if prefix is None:
            return None
        target = self.codec["target"]
        return self.open_words(target.encode(clean(prefix)), target.ends_in_space(prefix))

    def open_words(self, ids: tf.RaggedTensor, opens: tf.Tensor) -> tf.RaggedTensor:
        """Ids, and the start id after those where a word `opens` (B,)."""
        starts = tf.fill((tf.math.count_nonzero(opens),), BOS_ID)
        counts = tf.cast(opens, ids.row_splits.dtype)
        return tf.concat(
            [ids, tf.RaggedTensor.from_row_lengths(starts, counts, validate=False)], axis=1
        )

    def predictions(self, hypotheses: Hypotheses, text: tf.Tensor) -> Predictions:
        """The texts of the hypotheses for strings (B,); equal ones once, if so configured."""
        texts, scores = self.decode(hypotheses, text), hypotheses.scores
        if self.config.distinct and scores.shape[1] != 1:
            texts, scores = _without_repeated(texts, scores)
        count = self.config.num_hypotheses
        has_end = tf.reduce_any(tf.equal(hypotheses.ids[:, 0], EOS_ID), axis=1)
        tokens = hypotheses.lengths[:, 0]
        at_limit = tf.logical_and(tokens > 0, tf.logical_not(has_end))
        return Predictions(texts[:, :count], scores[:, :count], at_limit, tokens)

    def decode(self, hypotheses: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        """The strings (B, N) of hypotheses for the strings (B,)."""
        strings = self.codec["target"].decode(self.text_ids(hypotheses))
        return tf.reshape(strings, tf.shape(hypotheses.lengths))

    def text_ids(self, hypotheses: Hypotheses) -> tf.RaggedTensor:
        """The ids of hypotheses that are text (B·N, None); see `GraphTokenizer.text_ids`."""
        ids = tf.reshape(hypotheses.ids, (-1, tf.shape(hypotheses.ids)[2]))
        return self.codec["target"].text_ids(ids, tf.reshape(hypotheses.lengths, [-1]))

    def read_pairs(
        self, source: tf.Tensor, target: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        """Ids of strings (B,) and of predictions (B,), and whether one of a pair was cut (B,)."""
        sources, cut = self.encode(clean(source))
        targets, target_cut = self.encode_target(target)
        return sources, targets, tf.logical_or(cut, target_cut)

    def score_rows(self, source: tf.Tensor, target: tf.Tensor) -> Score:
        """The scores of the pairs of ids (R, S) and (R, T)."""
        return score_pairs(self.model, source, target, self.config.length_penalty)

    def endpoints(self) -> dict[str, tuple[Callable[..., Outputs], list[str]]]:
        return {
            "serving_default": (self.predict, ["text"]),
            "n_best": (self.n_best, ["text"]),
            "score": (self.score, ["source", "target"]),
        }

    def predict(self, text: tf.Tensor) -> Outputs:
        """Strings (B,) to the predicted strings, `score`, float32, `cut` and `truncated`, bool."""
        texts, scores, flags = self._predict(text, self._best, count=1)
        return {self._output: texts[:, 0], "score": scores[:, 0]} | flags

    def n_best(self, text: tf.Tensor) -> Outputs:
        """Strings (B,) to predicted strings (B, N), `scores`, `cut` and `truncated`.

        See `Predictions`.
        """
        texts, scores, flags = self._predict(text, self._all, self.config.num_hypotheses)
        return {f"{self._output}s": texts, "scores": scores} | flags

    def score(self, source: tf.Tensor, target: tf.Tensor) -> Outputs:
        """Strings (B,) and predictions (B,) to `score` and `log_probability`, float32 (B,)."""
        same = "expected as many targets as sources."
        tf.debugging.assert_equal(tf.size(source), tf.size(target), message=same)
        sources, targets, cut = self.read_pairs(source, target)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return tuple(self.score_rows(rows_of(sources, rows), rows_of(targets, rows)))

        lengths = tf.maximum(lengths_of(sources), lengths_of(targets))
        nothing = tf.zeros(tf.shape(source))
        score, log_probability = self.in_micro_batches(run, lengths, (nothing, nothing))
        return {"score": score, "log_probability": log_probability, "truncated": cut}

    def _predict(
        self, text: tf.Tensor, search: SearchIds, count: int
    ) -> tuple[tf.Tensor, tf.Tensor, Outputs]:
        """Predictions and scores (B, N), and what was cut or reached its limit."""
        inputs = self.read(text)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            hypotheses = self._search_rows(search, inputs, rows)
            of_rows = self.predictions(hypotheses, tf.gather(inputs.text, rows))
            return of_rows.texts[:, :count], of_rows.scores[:, :count], of_rows.at_limit

        def max_rows(length: tf.Tensor) -> tf.Tensor:
            if self._jit_compile:
                return max_compiled_rows(length, self.max_source_length)
            return self.max_rows(length)

        batch = tf.shape(text)[0]
        copies = tf.concat([inputs.copies[:, None], tf.fill((batch, count - 1), "")], axis=1)
        score_of_none = tf.constant([0.0] + [NEG_INF] * (count - 1))
        scores = tf.tile(score_of_none[None], (batch, 1))
        nothing = (copies, scores, tf.zeros((batch,), tf.bool))
        texts, scores, at_limit = run_in_micro_batches(run, inputs.lengths, max_rows, nothing)
        flags = {"cut": inputs.cut, "truncated": tf.logical_or(inputs.cut, at_limit)}
        return texts, scores, flags

    def _search_rows(self, search: SearchIds, inputs: Inputs, rows: tf.Tensor) -> Hypotheses:
        ids = rows_of(inputs.ids, rows)
        if inputs.prefix is None:
            return search(ids)
        prefix = rows_of(inputs.prefix, rows)
        # Each call has other rows with a prefix; a compiled search or one in parts takes none.
        return tf.cond(
            tf.shape(prefix)[1] > 0,
            lambda: self.whole_search(ids, prefix),
            lambda: search(ids),
        )

    def _in_parts(self, search: SearchIds) -> SearchIds:
        """The search of `parallel_batches` parts of a batch at a time."""
        parts = self.config.parallel_batches
        return ParallelSearch(search, parts) if parts > 1 else search

    def _compiled(self, search: Search) -> SearchIds:
        """The search as one graph, compiled by XLA for few shapes if `jit_compile` is set."""
        if not self._jit_compile:
            return Traced(search, IDS)

        @tf.function(jit_compile=True, autograph=False)
        def compiled(source: tf.Tensor, matrix: tf.Tensor) -> Hypotheses:
            with with_transposed(self.model.output_embedding, matrix):
                return search(source)

        def search_padded(source: tf.Tensor) -> Hypotheses:
            source_in_shape = pad_to_shape(source, self.max_source_length)
            hypotheses = compiled(source_in_shape, self._matrix.value())
            return Hypotheses(*(field[: tf.shape(source)[0]] for field in hypotheses))

        return search_padded


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
