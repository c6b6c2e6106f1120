"""Predictions of texts: a codec, a model and a search in one object."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.inference import predictor
from tf_transformer.inference.inputs import WITH_INPUTS, Input, as_texts, columns_of
from tf_transformer.inference.notices import UNSEEN_WORDS, WARNINGS
from tf_transformer.inference.search import Search
from tf_transformer.inference.search_graph import Predictions, SearchGraph
from tf_transformer.inference.search_texts import Prepared
from tf_transformer.inference.text_graph import IDS, NUMBERS, STRINGS, Traced
from tf_transformer.machine.limits import total_memory
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings
from tf_transformer.text.normalization import clean
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.special_ids import PAD_ID, UNK_ID
from tf_transformer.text.target_tag import wrong_tag

Pairs = Iterator[tuple[list[int], np.ndarray, np.ndarray]]
"""Batches of pairs of texts: indices of the pairs, source ids (B, S), target ids (B, T)."""


class TextPredictor(predictor.Predictor):
    """Predicts a text for each text by a search, like `Translator`.

    A `SearchGraph` encodes texts, searches and decodes, as in a SavedModel. A subclass may override
    `search` and `graph`, and `attention_batches` for other models. Arguments are those of
    `Predictor`.

    Attributes:
        graph_type: the class of the graph.
        output: name of the predicted text in the signatures of a SavedModel.
        copies: whether a text without letters is its own prediction, with score 0.

    Raises:
        InputError: when the configuration names a piece that the vocabulary does not have.
    """

    graph_type: type[SearchGraph] = SearchGraph
    output: ClassVar[str] = "prediction"
    copies: bool = False
    _graph: SearchGraph

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        name = "top_k" if config.sampling else "beam_size"
        if (value := getattr(config, name)) > codec.size("target"):
            raise InputError(
                f"decode.{name} ({value:,}) must be at most {codec.size('target'):,}, the "
                "number of tokens in the vocabulary."
            )
        self.excluded_ids = tuple(map(codec["target"].piece_to_id, config.excluded_tokens))
        if config.avoid_unknown:
            self.excluded_ids += (UNK_ID,)
        if config.target_tag:
            tags = codec["source"].tags
            if config.target_tag not in tags:
                raise InputError(_unknown_tag(config.target_tag, tags))
        super().__init__(model, codec, config)
        graph = self._graph
        self.optional_inputs = graph.inputs
        given = [STRINGS] * len(graph.inputs)
        # A text alone, or a text with every input: two graphs for any number of inputs.
        self._read_text = Traced(graph.read, STRINGS)
        self._read_given = Traced(graph.read, STRINGS, *given)
        searches: list[Callable[..., Hypotheses]] = [graph.search, *graph.searches_given]
        self._searches = [
            Traced(self._in_graph(search), STRINGS, IDS, *[IDS] * fields)
            for fields, search in enumerate(searches)
        ]
        self._of_copies = Traced(self._strings_of_copies, STRINGS, STRINGS, NUMBERS)
        self._read_pairs = Traced(graph.read_pairs, STRINGS, STRINGS)
        self._score = Traced(graph.score_rows, IDS, IDS)

    def _in_graph(self, search: Callable[..., Hypotheses]) -> Callable[..., Any]:
        """The search as a function of strings (R,), their ids and fields of their problems.

        The results are predictions, or if these are made later, hypotheses and their texts.
        """

        def run(text: tf.Tensor, *ids: tf.Tensor) -> Any:
            results = self._graph.drawn(search(*ids), text, *ids)
            return results if self._repairs_later else self._predictions(*results, text, *ids)

        return run

    def _predictions(
        self, hypotheses: Hypotheses, drawn: tf.Tensor, text: tf.Tensor, *ids: tf.Tensor
    ) -> Predictions:
        """`SearchGraph.predictions` with all of `SearchGraph.strings`."""
        result = self._graph.predictions(hypotheses, drawn, text, *ids)
        warnings = self._graph.warnings(text, result.texts)
        return result._replace(strings=[*result.strings, *warnings])

    def _strings_of_copies(
        self, text: tf.Tensor, copies: tf.Tensor, lengths: tf.Tensor
    ) -> list[tf.Tensor]:
        """`SearchGraph.strings`, (B, 1) each, for texts without a search; see `Prepared`."""
        copied = tf.where(tf.equal(lengths, 0), text, "")
        warnings = self._graph.warnings(copied, copies[:, None])
        return [*self._graph.strings_of_copies(copies), *warnings]

    @property
    def _repairs_later(self) -> bool:
        """Whether kept spans are repaired outside of the graph of the search.

        So the repair, which few batches need, is traced only if one does.
        """
        return bool(self.config.keep) and not self.config.word_probabilities

    def search(self, config: DecodeConfig, static_shapes: bool = False) -> Search:
        """The search for a configuration; XLA needs `static_shapes`."""
        return Search(
            *(self.model, config, self.excluded_ids, static_shapes),
            word_starts=self.codec["target"].word_starts,
            word_ends=self.codec["target"].word_ends,
            shortest_source=self.graph_type.shortest_source,
        )

    def graph(self, jit_compile: bool = False) -> SearchGraph:
        search = self.search(self.config, static_shapes=jit_compile)
        return self.graph_type(
            *(search, self.codec, self.max_source_length, jit_compile),
            *(self.output, self.copies, self.translates),
        )

    def _n_best(self, call: predictor.Call) -> predictor.NBest:
        inputs = self._read(call)
        ids, lengths, cut = inputs.ids.lists(), inputs.lengths.numpy().tolist(), inputs.cut.numpy()
        text = inputs.text.numpy()
        apart, nothing = inputs.apart.numpy(), [np.zeros(0, np.int32)] * len(call.texts)
        given = [
            inputs.problem[kind.name].lists() if kind.name in inputs.problem else nothing
            for kind in self._graph.problem_inputs
        ]
        strings = [[()] * len(cut)] * len(self._graph.strings)
        if not all(lengths):
            copied = self._of_copies(inputs.text, inputs.copies, inputs.lengths)
            strings = [column.numpy() for column in copied]
        result = [
            predictor.predictions_of([copy], [0.0], is_cut, **self._named(of_copy))
            for copy, is_cut, *of_copy in zip(inputs.copies.numpy(), cut, *strings, strict=True)
        ]

        trained = self.config.trained_source_length
        is_long = [0 < trained < length for length in lengths]

        def run(indices: list[int]) -> Predictions:
            columns = [[column[i] for i in indices] for column in (ids, *given)]
            while not any(map(len, columns[-1])):  # the search for fewer inputs
                columns.pop()
            return self._search(text[indices], *map(predictor.pad, columns))

        groups = [np.where(group, lengths, 0).tolist() for group in (~apart, apart)]
        batches = itertools.chain.from_iterable(map(self._batches, groups))
        for indices, batch in self._in_parallel(run, batches):
            for row, i in enumerate(indices):
                result[i] = predictor.predictions_of(
                    *(batch.texts[row], batch.scores[row]),
                    *(cut[i], batch.at_limit[row], is_long[i]),
                    **self._named(column[row] for column in batch.strings),
                )
            call.progress(len(indices), int(batch.tokens.sum()))
        return result

    def _named(self, strings: Iterable[Sequence[bytes]]) -> dict[str, Any]:
        """A row of each of `SearchGraph.strings` by name."""
        return dict(zip(self._graph.strings, strings, strict=True))

    def _require_tags(self, texts: Sequence[str]) -> None:
        """Raises an `InputError` for a text that starts with a wrong tag, if the model has tags."""
        tags = self.codec["source"].tags
        for text in texts if tags else ():
            if (tag := wrong_tag(clean(text), tags)) is not None:
                raise InputError(_unknown_tag(tag, tags))

    def joined(self, texts: Sequence[str], **inputs: Sequence[str] | None) -> list[str]:
        texts = as_texts(texts)
        given = columns_of(self.optional_inputs, texts, inputs)
        self._require_choices(given)
        values = {name: as_strings(column) for name, column in given.items()}
        return as_texts(self._graph.join(as_strings(texts), values))

    def _require_choices(self, given: Mapping[str, list[str]]) -> None:
        """Raises an `InputError` for a value that the codec does not have."""
        for kind in self.optional_inputs:
            if kind.choices:
                known = kind.choices(self.codec)
                for value in given.get(kind.name, ()):
                    if value and value not in known:
                        raise InputError(
                            f"unknown {kind.name} {value!r:.60}; this model has "
                            f"{', '.join(sorted(known))}. Give one of them, or an empty text."
                        )

    def _read(self, call: predictor.Call) -> Prepared:
        self._require_tags(call.texts)
        self._require_choices(call.given)
        if not call.given:
            return self._read_text(as_strings(call.texts))
        return self._read_given(*map(as_strings, (call.texts, *call.given.values())))

    def _search(self, text: np.ndarray, ids: np.ndarray, *fields: np.ndarray) -> Predictions:
        self._require_memory(*ids.shape)
        strings = tf.constant(text)
        results = self._searches[len(fields)](strings, ids, *fields)
        if self._repairs_later:
            results = self._predictions(*results, strings, ids, *fields)
        columns: Any = map(np.asarray, results)
        return Predictions(*columns)

    @functools.cached_property
    def _memory(self) -> int:
        return total_memory()

    def _require_memory(self, rows: int, length: int) -> None:
        """Raises an `InputError` for a batch whose search needs more memory than the machine has.

        In a step, W tokens of a sentence attend to W · L cached tokens; each of them has V logits.
        """
        config = self.config
        width = config.num_hypotheses if config.sampling else config.beam_size
        longest = int(length * config.max_length_ratio) + config.max_extra_length
        longest = min(longest, 2 * length + 50)  # caches grow; most searches end before this length
        cached = width * min(longest, config.max_length or longest)
        numbers = width * self.codec.size("target")
        for model in self.model_configs:
            if model.architecture == "transformer":
                decoder = model.decoder
                per_token = 2 * decoder.num_key_value_heads * decoder.key_dim * decoder.num_layers
                numbers += cached * (per_token + decoder.num_heads * width)
        needed, total = 4 * rows * numbers, self._memory  # float32
        if needed > total:
            raise InputError(
                f"a search with {width:,} hypotheses of up to {cached // width:,} tokens for "
                f"{rows:,} texts needs about {needed / 2**30:,.0f} GiB, and this machine has "
                f"{total / 2**30:,.0f} GiB. Give a smaller decode.beam_size, "
                "decode.num_hypotheses, decode.max_length or decode.batch_size."
            )

    def _scores(self, call: predictor.Call) -> list[predictor.PairScore]:
        sources, targets, cut = self._pairs(call)
        result = [predictor.PairScore(0.0, 0.0, is_cut) for is_cut in cut]
        for (indices, _, target), scores in self._in_parallel(
            lambda batch: self._score(*batch[1:]), self._pair_batches(sources, targets)
        ):
            for i, score, total in zip(indices, *map(np.asarray, scores), strict=True):
                result[i] = predictor.PairScore(float(score), float(total), cut[i])
            call.progress(len(indices), int((target != PAD_ID).sum()))
        return result

    def attention_batches(self, call: predictor.Call) -> predictor.Attentions:
        for indices, source, target in self.pairs(call):
            read = read_ids(target)
            run = self.model.run((source, read))
            kinds = [predictor.BatchAttention("cross", target, source, run.cross_attention)]
            if hasattr(run, "encoder_attention"):  # a recurrent model has no self-attention
                encoder = predictor.by_position(self.model.encoder, run.encoder_attention)
                decoder = predictor.by_position(self.model.decoder, run.decoder_attention)
                kinds = [
                    predictor.BatchAttention("encoder", source, source, encoder),
                    predictor.BatchAttention("decoder", target, read, decoder),
                    *kinds,
                ]
            yield indices, kinds

    def signatures(self, texts: Sequence[str]) -> dict[str, predictor.SignatureCase]:
        """The signatures of the SavedModel, with inputs made from `texts` and their outputs.

        The signature `score` gets the best predictions as targets.
        """
        texts = as_texts(texts)
        n_best = self.n_best(texts)
        targets = [row[0].text for row in n_best]
        scores = self.score(texts, targets)
        of_pairs: dict[str, list] = {
            "score": [pair.score for pair in scores],
            "log_probability": [pair.log_probability for pair in scores],
        }
        cases = self._cases({"text": texts}, n_best)
        cases["score"] = predictor.SignatureCase({"source": texts, "target": targets}, of_pairs)
        if self.optional_inputs:
            given = {x.name: self._examples(x, texts, targets) for x in self.optional_inputs}
            n_best = self._n_best(predictor.Call(texts, given=given))
            more = self._cases({"text": texts} | given, n_best)
            cases |= {WITH_INPUTS[name]: case for name, case in more.items()}
        return cases

    def _examples(self, kind: Input, texts: list[str], predictions: list[str]) -> list[str]:
        """Values of an input for the check of the signatures."""
        return kind.examples(self.codec, texts, predictions)

    def _cases(
        self, inputs: dict[str, list[str]], n_best: predictor.NBest
    ) -> dict[str, predictor.SignatureCase]:
        """The signatures `serving_default` and `n_best` for predictions.

        They are without the probabilities of words, and without the warnings of `n_best`.
        """
        best = [row[0] for row in n_best]
        flags: dict[str, list] = {"cut": [x.cut for x in best]}
        flags["truncated"] = [x.truncated for x in best]
        if self.codec.seen_words and self.translates:
            flags[UNSEEN_WORDS] = [" ".join(x.unseen_words) for x in best]
        if self.config.split != "none":
            flags["parts"] = [x.parts for x in best]
        of_best: dict[str, list] = {self.output: [x.text for x in best]}
        if self.translates:
            of_best[WARNINGS] = [" ".join(x.notices) for x in best]
        of_best["score"] = [x.score for x in best]
        of_all: dict[str, list] = {f"{self.output}s": [[x.text for x in row] for row in n_best]}
        of_all["scores"] = [[x.score for x in row] for row in n_best]
        return {
            "serving_default": predictor.SignatureCase(inputs, flags | of_best),
            "n_best": predictor.SignatureCase(inputs, flags | of_all),
        }

    def pairs(self, call: predictor.Call) -> Pairs:
        """Batches of texts and their given predictions."""
        sources, targets, _ = self._pairs(call)
        return self._pair_batches(sources, targets)

    def _pairs(self, call: predictor.Call) -> tuple[list[np.ndarray], list[np.ndarray], list[bool]]:
        """Ids of texts, ids of given predictions, and whether a text of each pair was cut."""
        self._require_tags(call.texts)
        *ids, cut = self._read_pairs(as_strings(call.texts), as_strings(call.predictions))
        sources, targets = (rows.lists() for rows in ids)
        return sources, targets, cut.numpy().tolist()

    def _pair_batches(self, sources: list[np.ndarray], targets: list[np.ndarray]) -> Pairs:
        lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
        for indices in self._batches(lengths):
            source, target = (predictor.pad([x[i] for i in indices]) for x in (sources, targets))
            yield indices, source, target


def _unknown_tag(tag: str, tags: Mapping[str, int]) -> str:
    return (
        f"unknown target tag {tag!r:.60}; this model has {', '.join(sorted(tags)) or 'none'}. Give "
        "one of them, or leave it out. If >> is text, put a space after it."
    )


def read_ids(target: np.ndarray) -> np.ndarray:
    """The ids (B, T) that a decoder reads to predict `target` (B, T); 0 at padding."""
    return np.where(target == PAD_ID, PAD_ID, shift_right(target))
