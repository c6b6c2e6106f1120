"""Predictions by a search, from texts to texts on tensors."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import tensorflow as tf

from tf_transformer.decoding import NEG_INF, Hypotheses
from tf_transformer.decoding.step_logits import transposed, with_transposed
from tf_transformer.inference import micro_batches, text_graph
from tf_transformer.inference.inputs import WITH_INPUTS
from tf_transformer.inference.micro_batches import ParallelSearch, SearchIds
from tf_transformer.inference.notices import UNSEEN_WORDS, WARNINGS
from tf_transformer.inference.notices_graph import OF_PAIRS, PairNotices, names_of
from tf_transformer.inference.search import Score, Search, penalty_of, score_pairs
from tf_transformer.inference.search_texts import Prepared, SearchTexts
from tf_transformer.inference.second_search import SecondSearch
from tf_transformer.inference.word_probabilities import (
    WORD_PROBABILITIES,
    of_copies,
    word_probabilities,
)
from tf_transformer.text.codec import Codec
from tf_transformer.text.faults import scripts_of
from tf_transformer.text.graph_tokenizer import valid
from tf_transformer.text.seen_words import UnseenWords
from tf_transformer.text.special_ids import EOS_ID, PAD_ID

TABLE = tf.TensorSpec((None, None), tf.string)


class Predictions(NamedTuple):
    """The predictions for texts, best first; then empty places, with "" and the score `NEG_INF`."""

    texts: tf.Tensor  # string (B, N)
    scores: tf.Tensor  # float32 (B, N)
    at_limit: tf.Tensor  # bool (B,): whether the best prediction has no end token
    tokens: tf.Tensor  # int32 (B,): tokens of the best prediction, with the end token
    strings: Sequence[tf.Tensor] = ()  # string (B, N), for each of `SearchGraph.strings`


class SearchGraph(SearchTexts):
    """A search on string tensors, with its signatures; see `TextGraph`.

    The output `cut` of a signature marks rows that were longer than `max_source_length`. The output
    `truncated` marks these rows, and rows whose best prediction reached its length limit. With
    `config.split`, the output `parts` counts the parts of each row, and a row is marked if one of
    its parts is. With `config.word_probabilities`, there is an output of this name; see the
    function of this name. With `translates`, the output `warnings` has the names of `Notice` that
    hold for a text and a translation, with a space between two.

    A subclass for another form of text overrides members of `SearchTexts` and `endpoints`.

    Args:
        search: the search on ids; its configuration also limits the micro-batches.
        codec, max_source_length: as in `TextGraph`, also for given targets.
        jit_compile: whether XLA compiles the search of the signatures. All batches are padded to
            one of a few shapes.
        output: name of the predicted text in the signatures.
        copies: whether a text without letters is its own prediction, with score 0.
        translates: whether predictions say the same as their texts.
    """

    def __init__(
        self,
        search: Search,
        codec: Codec,
        max_source_length: int,
        jit_compile: bool,
        output: str = "prediction",
        copies: bool = False,
        translates: bool = False,
    ):
        super().__init__(search.model, codec, search.config, max_source_length, copies)
        self._output = output
        self._jit_compile = jit_compile
        self._translates = translates
        scripts = scripts_of(codec["target"].text_pieces) if translates else []
        self.pair_notices = PairNotices(scripts)
        self._warnings = text_graph.Traced(
            lambda *pairs: names_of(self._pairs_show(*pairs), OF_PAIRS), text_graph.STRINGS, TABLE
        )
        has_words = translates and codec.seen_words
        self._unseen_words = None
        if has_words:  # one graph, so that the export has the words once
            self._unseen_words = text_graph.Traced(
                UnseenWords(codec.seen_words), text_graph.STRINGS
            )
        if jit_compile:
            # XLA's product with the untransposed matrix takes up to three times as long. To
            # transpose it in each call takes as long as several steps. The export stores both.
            self._matrix = tf.Variable(transposed(self.model.output_embedding), trainable=False)
        config = self.config
        if config.distinct and config.num_hypotheses > 1 and not config.sampling:
            # Repeated texts are removed after the search, so the beam holds spare hypotheses.
            config = replace(config, num_hypotheses=config.beam_size)
        self.whole_search = replace(search, config=config)
        # For all hypotheses, from ids (B, S), for Python and the signatures.
        self.search = self._compiled(self.whole_search)
        # The same for ids (B, S) and those of the first one, two, ... of `problem_inputs`, (B, P).
        # The rows with a prefix differ from call to call, so XLA does not compile these searches.
        self.searches_given = [
            text_graph.Traced(self._search_given, *[text_graph.IDS] * (1 + fields), rare=True)
            for fields in range(1, 1 + len(self.problem_inputs))
        ]
        self._second_search = SecondSearch(self) if self.config.second_search else None
        best, count = self._in_parts(self.search), self.config.num_hypotheses
        self._all = self._best = self._predicted(best, count)
        if count > 1:
            if not self.config.sampling:  # a search for only the best hypothesis ends earlier
                of_one = replace(search, config=replace(self.config, num_hypotheses=1))
                best = self._in_parts(self._compiled(of_one))
            self._best = self._predicted(best, 1)

    def predictions(
        self,
        hypotheses: Hypotheses,
        drawn: tf.Tensor,
        text: tf.Tensor,
        source: tf.Tensor,
        *fields: tf.Tensor,
    ) -> Predictions:
        """The predictions from hypotheses and their decoded texts (B, N) for strings (B,).

        Spans are kept, and with `config.distinct` no text is repeated. `source`, int32 (B, S), are
        the ids of the strings. `fields`, int32 (B, P), are those of the `Problem`, one for each of
        `problem_inputs`, if the search had them.
        """
        scores, ids = hypotheses.scores, hypotheses.ids
        texts = self.shown(drawn, text)
        if self.kept_spans:
            named = dict(zip((kind.name for kind in self.problem_inputs), fields, strict=False))
            kept = self.kept_spans(hypotheses, text, texts, named.get("prefix"))
            if self.config.word_probabilities:
                ids = self._ids_of_repaired(text, kept, tf.not_equal(kept, drawn), ids)
                source = self.encode(text)[0].to_tensor(PAD_ID)
            texts = kept
        strings = []
        if self.config.word_probabilities:
            strings.append(word_probabilities(self.model, self.codec["target"], source, ids))
        if self.config.distinct and scores.shape[1] != 1:
            texts, scores, *strings = _without_repeated(texts, scores, *strings)
        count = self.config.num_hypotheses
        has_end = tf.reduce_any(tf.equal(hypotheses.ids[:, 0], EOS_ID), axis=1)
        tokens = hypotheses.lengths[:, 0]
        at_limit = tf.logical_and(tokens > 0, tf.logical_not(has_end))
        texts, scores, *strings = (field[:, :count] for field in (texts, scores, *strings))
        return Predictions(texts, scores, at_limit, tokens, strings)

    @property
    def strings(self) -> tuple[str, ...]:
        """The names of the outputs of strings beside the predictions."""
        names = {WORD_PROBABILITIES: self.config.word_probabilities, WARNINGS: self._translates}
        return tuple(name for name, exists in names.items() if exists)

    def warnings(self, text: tf.Tensor, predictions: tf.Tensor) -> list[tf.Tensor]:
        """The names of `PairNotices`, string (B, N), if the graph translates."""
        return [self._warnings(text, predictions)] if self._translates else []

    def _pairs_show(self, text: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        return self.pair_notices.of_all(self.untagged(text), predictions)

    def strings_of_copies(self, copies: tf.Tensor) -> list[tf.Tensor]:
        """`Predictions.strings` for strings (B,) that are their own predictions, (B, 1) each."""
        return [of_copies(copies[:, None])] if self.config.word_probabilities else []

    def _ids_of_repaired(
        self, text: tf.Tensor, outputs: tf.Tensor, repaired: tf.Tensor, ids: tf.Tensor
    ) -> tf.Tensor:
        """The ids (B, N, L) of hypotheses for strings (B,); new for repaired outputs."""
        sources = tf.repeat(text, tf.shape(outputs)[1])
        targets = self.read_pairs(sources, tf.reshape(outputs, [-1]))[1].to_tensor(PAD_ID)
        targets = tf.reshape(targets, tf.concat([tf.shape(outputs), tf.shape(targets)[1:]], 0))
        longest = tf.maximum(tf.shape(ids)[2], tf.shape(targets)[2])
        ids, targets = (
            tf.pad(x, [[0, 0], [0, 0], [0, longest - tf.shape(x)[2]]]) for x in (ids, targets)
        )
        return tf.where(repaired[..., None], targets, ids)

    def drawn(
        self, hypotheses: Hypotheses, text: tf.Tensor, source: tf.Tensor, *fields: tf.Tensor
    ) -> tuple[Hypotheses, tf.Tensor]:
        """Hypotheses and their texts (B, N), with those of the `SecondSearch`, if there is one.

        The other arguments are those of `predictions`.
        """
        drawn = self.decode(hypotheses, text)
        if self._second_search:
            return self._second_search(hypotheses, drawn, text, source, fields)
        return hypotheses, drawn

    def score_rows(self, source: tf.Tensor, target: tf.Tensor) -> Score:
        """The scores of pairs of ids, int32 (R, S) and (R, T)."""
        return score_pairs(self.model, source, target, penalty_of(self.config))

    def endpoints(self) -> text_graph.Endpoints:
        """The signatures `serving_default`, `n_best` and `score`; see also `WITH_INPUTS`."""
        signatures: text_graph.Endpoints = {
            "serving_default": (self.predict, ["text"]),
            "n_best": (self.n_best, ["text"]),
            "score": (self.score, ["source", "target"]),
        }
        names = ["text", *(kind.name for kind in self.inputs)]
        more = {WITH_INPUTS[name]: (signatures[name][0], names) for name in WITH_INPUTS}
        return signatures | (more if self.inputs else {})

    def predict(self, text: tf.Tensor, *given: tf.Tensor) -> text_graph.Outputs:
        """The signature `serving_default`: text, `score`, `cut` and `truncated`, each (B,)."""
        texts, scores, strings, flags = self._best[bool(given)](text, *given)
        outputs = {self._output: texts[:, 0], "score": scores[:, 0]} | flags
        return outputs | {name: of_all[:, 0] for name, of_all in strings.items()}

    def n_best(self, text: tf.Tensor, *given: tf.Tensor) -> text_graph.Outputs:
        """The signature `n_best`: texts and `scores` (B, N), `cut` and `truncated` (B,)."""
        texts, scores, strings, flags = self._all[bool(given)](text, *given)
        return {f"{self._output}s": texts, "scores": scores} | strings | flags

    def score(self, source: tf.Tensor, target: tf.Tensor) -> text_graph.Outputs:
        """The signature `score`: `score`, `log_probability` and `truncated` of pairs, each (B,)."""
        source, target = equally_many("expected as many targets as sources.", source, target)
        sources, targets, cut = self.read_pairs(source, target)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return tuple(
                self.score_rows(
                    text_graph.rows_of(sources, rows), text_graph.rows_of(targets, rows)
                )
            )

        lengths = tf.maximum(text_graph.lengths_of(sources), text_graph.lengths_of(targets))
        nothing = tf.zeros(tf.shape(source))
        score, log_probability = self.in_micro_batches(run, lengths, (nothing, nothing))
        return {"score": score, "log_probability": log_probability, "truncated": cut}

    def _predicted(self, search: SearchIds, count: int) -> list[text_graph.Traced]:
        """`_predict` as graphs that signatures share: of texts alone, and of texts with inputs."""
        function = functools.partial(self._predict, search, count)
        sizes = (1, 1 + len(self.inputs))
        return [text_graph.Traced(function, *[text_graph.STRINGS] * size) for size in sizes]

    def _predict(
        self, search: SearchIds, count: int, text: tf.Tensor, *given: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, text_graph.Outputs, text_graph.Outputs]:
        """The `count` best texts and scores (B, N), more strings (B, N), and flags (B,).

        Strings are `word_probabilities`, with `config.word_probabilities`, and `warnings`, if the
        graph translates. Flags are `cut` and `truncated`; beside them are `parts`, with
        `config.split`, and `unseen_words`, if the words of the training are known.
        """
        if given:
            text, *others = equally_many("expected one string for each text.", text, *given)
            given = tuple(others)
        unseen = self.unseen_words(text)
        parts, columns = None, [text, *given]
        if self.config.split != "none":
            parts, columns = self.divide(*columns)
        inputs, at_limit, (texts, scores, *more) = self._predict_whole(search, count, *columns)
        flags = {"cut": inputs.cut, "truncated": inputs.cut | at_limit}
        shown, text_of = texts, None
        if parts:
            shown, text_of = texts[:, :1], parts.text_of  # the best predictions tell of all
            texts, scores, *more = self.rejoin(parts, texts, scores, *more)
            flags = {
                name: tf.math.segment_max(tf.cast(flag, tf.int32), parts.text_of) > 0
                for name, flag in flags.items()
            }
            flags["parts"] = parts.counts
        if self._unseen_words:
            flags[UNSEEN_WORDS] = unseen
        strings = dict(zip(self.strings, more, strict=False))
        if self._translates:  # once, and not for each micro-batch
            is_long = inputs.lengths > (self.config.trained_source_length or tf.int32.max)
            of_search = tf.stack([inputs.cut, at_limit, is_long], axis=1)
            pairs = self.untagged(inputs.text), shown
            strings[WARNINGS] = self.pair_notices.warnings(
                *pairs, of_search, unseen, scores, text_of
            )
        return texts, scores, strings, flags

    def _predict_whole(
        self, search: SearchIds, count: int, text: tf.Tensor, *given: tf.Tensor
    ) -> tuple[Prepared, tf.Tensor, list[tf.Tensor]]:
        """`_predict` of texts (B,) that are not divided, without warnings.

        The results are the texts as they are read; which of them reached the limit of their length,
        bool (B,); and their predictions (B, N), with scores and more strings.
        """
        inputs = self.read(text, *given)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            ids = text_graph.rows_of(inputs.ids, rows)
            fields = self._fields(inputs, rows)
            hypotheses = self._search_rows(search, ids, fields)
            strings = tf.gather(inputs.text, rows)
            drawn = self.drawn(hypotheses, strings, ids, *fields)
            of_rows = self.predictions(*drawn, strings, ids, *fields)
            columns = of_rows.texts, of_rows.scores, *of_rows.strings
            return *(column[:, :count] for column in columns), of_rows.at_limit

        def max_rows(length: tf.Tensor) -> tf.Tensor:
            if self._jit_compile:
                return micro_batches.max_compiled_rows(length, self.max_source_length)
            return self.max_rows(length)

        batch = tf.shape(text)[0]
        none = tf.fill((batch, count - 1), "")
        columns = inputs.copies[:, None], *self.strings_of_copies(inputs.copies)
        copies, *strings = (tf.concat([column, none], axis=1) for column in columns)
        score_of_none = tf.constant([0.0] + [NEG_INF] * (count - 1))
        scores = tf.tile(score_of_none[None], (batch, 1))
        nothing = (copies, scores, *strings, tf.zeros((batch,), tf.bool))
        texts, scores, *strings, at_limit = micro_batches.run_in_micro_batches(
            run, inputs.lengths, max_rows, nothing, inputs.apart if given else None
        )
        return inputs, at_limit, [texts, scores, *strings]

    def unseen_words(self, text: tf.Tensor) -> tf.Tensor:
        """The `UnseenWords` of strings (R,), without tags and kept spans: string (R,).

        Without a list of seen words, no word is unseen.
        """
        if not self._unseen_words:
            return tf.fill(tf.shape(text), "")
        _, rest = self.codec["source"].split_tag(valid(text))
        return self._unseen_words(self.without_spans(rest))

    def _fields(self, inputs: Prepared, rows: tf.Tensor) -> list[tf.Tensor]:
        """The fields of the `Problem`, int32 (R, P), one for each of `problem_inputs`, or none."""
        if not inputs.problem:
            return []
        none = tf.zeros((tf.size(rows), 0), tf.int32)
        return [
            text_graph.rows_of(inputs.problem[kind.name], rows)
            if kind.name in inputs.problem
            else none
            for kind in self.problem_inputs
        ]

    def _search_rows(
        self, search: SearchIds, ids: tf.Tensor, fields: Sequence[tf.Tensor]
    ) -> Hypotheses:
        """The hypotheses for ids (R, S); `search` is that without `fields`, of which some exist."""
        result = functools.partial(search, ids)
        for size, given in enumerate(self.searches_given[: len(fields)], start=1):
            has_field = tf.shape(fields[size - 1])[1] > 0
            with_field = functools.partial(given, ids, *fields[:size])
            result = functools.partial(tf.cond, has_field, with_field, result)
        return result()

    def _search_given(self, ids: tf.Tensor, *fields: tf.Tensor) -> Hypotheses:
        search = replace(self.whole_search, static_shapes=False)  # XLA's operations run in XLA only
        names = (kind.name for kind in self.problem_inputs)
        return search(ids, dict(zip(names, fields, strict=False)))

    def _in_parts(self, search: SearchIds) -> SearchIds:
        """The search that runs `parallel_batches` parts of a batch in parallel."""
        parts = self.config.parallel_batches
        return ParallelSearch(search, parts) if parts > 1 else search

    def _compiled(self, search: Search) -> SearchIds:
        """The search as one graph; with `jit_compile`, compiled by XLA for a few shapes."""
        if not self._jit_compile:
            return text_graph.Traced(search, text_graph.IDS)

        @tf.function(jit_compile=True, autograph=False)
        def compiled(source: tf.Tensor, matrix: tf.Tensor) -> Hypotheses:
            with with_transposed(self.model.output_embedding, matrix):
                return search(source)

        def search_padded(source: tf.Tensor) -> Hypotheses:
            source_in_shape = micro_batches.pad_to_shape(source, self.max_source_length)
            hypotheses = compiled(source_in_shape, self._matrix.value())
            return Hypotheses(*(field[: tf.shape(source)[0]] for field in hypotheses))

        return search_padded


def equally_many(message: str, *columns: tf.Tensor) -> list[tf.Tensor]:
    """The columns (B,), after a check that they have the same number of strings."""
    sizes = [tf.size(column) for column in columns]
    checks = [tf.debugging.assert_equal(sizes[0], size, message) for size in sizes[1:]]
    with tf.control_dependencies([check for check in checks if check is not None]):  # None: passed
        return list(map(tf.identity, columns))


def _without_repeated(
    texts: tf.Tensor, scores: tf.Tensor, *words: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Moves repeated texts of each row (B, N) to its end, as "" with the score `NEG_INF`."""
    place = tf.range(tf.shape(texts)[1])
    earlier = place[None, :] < place[:, None]  # (N, N)
    equal = tf.equal(texts[:, :, None], texts[:, None, :])  # (B, N, N)
    repeated = tf.reduce_any(tf.logical_and(equal, earlier), axis=2)  # (B, N)
    order = tf.argsort(tf.cast(repeated, tf.int32), axis=1, stable=True)
    fields = [tf.where(repeated, "", texts), tf.where(repeated, NEG_INF, scores)]
    fields += [tf.where(repeated, "", of_texts) for of_texts in words]
    return tuple(tf.gather(field, order, batch_dims=1) for field in fields)
