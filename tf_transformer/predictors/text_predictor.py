"""Texts in, texts out: a tokenizer, a model and a search in one."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self, TypeVar

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.attention_record import SPECIAL_IDS, AttentionMap, AttentionRecord, Tokens
from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.export.graph import ServingGraph, write_saved_model
from tf_transformer.keras_settings import own_settings
from tf_transformer.memory import total_memory
from tf_transformer.predictors.predictor import (
    PairScore,
    Prediction,
    Progress,
    SignatureCase,
    as_texts,
    no_progress,
)
from tf_transformer.search import Search, score_pairs, with_spare_hypotheses
from tf_transformer.sequences import shift_right
from tf_transformer.special_ids import EOS_ID, PAD_ID, UNK_ID
from tf_transformer.threads import in_parallel, parallel_batches, require_threads
from tf_transformer.tokenizer import Tokenizer

Batch = TypeVar("Batch")
Result = TypeVar("Result")


class BatchAttention(NamedTuple):
    """One kind of attention of a batch: `AttentionMap` before ids become tokens."""

    kind: str
    queries: np.ndarray  # ids (B, T), 0 = padding
    keys: np.ndarray  # ids (B, S)
    layers: Sequence[tf.Tensor]  # (B, H, T, S) each


class TextPredictor:
    """Predicts a text for each text by a search; `Translator` is one.

    A subclass may override `encode`, `encode_target`, `decode`, `search`, `graph`, and for other
    models `attention_batches`. Encoding and decoding have counterparts on tensors in
    `ServingGraph`, which give equal results.

    Args:
        model: the built model.
        tokenizer: its tokenizer.
        config: how to search.

    Attributes:
        output: name of the predicted text in the signatures of a SavedModel.
        symbols: ids that are words of their own.

    Raises:
        InputError: when the configuration names a piece that the vocabulary does not have.
    """

    output: ClassVar[str] = "prediction"
    symbols: Container[int] = SPECIAL_IDS

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, config: DecodeConfig):
        require_threads()
        self.model = model
        self.tokenizer = tokenizer
        self.config = config
        for name in ("top_k",) if config.sampling else ("beam_size",):
            if (value := getattr(config, name)) > tokenizer.vocabulary_size:
                raise InputError(
                    f"decode.{name} ({value:,}) must be at most the {tokenizer.vocabulary_size:,} "
                    "tokens of the vocabulary."
                )
        self.excluded_ids = tuple(tokenizer.piece_to_id(piece) for piece in config.excluded_tokens)
        if config.avoid_unknown:
            self.excluded_ids += (UNK_ID,)
        # A learned position table has a last row; sinusoids have none.
        self.max_source_length = config.max_source_length
        if model.config.position == "learned":
            self.max_source_length = min(self.max_source_length, model.config.max_length)
        ids = tf.TensorSpec((None, None), tf.int32)
        search = self.search(with_spare_hypotheses(config))
        self._searches = {
            (is_single, inputs): tf.function(
                replace(search, absorb_memory=is_single), [ids] * inputs, autograph=False
            )
            for is_single in (False, True)
            for inputs in (1, 2)
        }
        self._score = tf.function(
            lambda source, target: score_pairs(model, source, target, config.length_penalty),
            input_signature=[ids, ids],
            autograph=False,
        )

    def use_one_graph(self) -> None:
        """Traces one graph for batches of all sizes; a single sentence takes longer in it."""
        for inputs in (1, 2):
            self._searches[True, inputs] = self._searches[False, inputs]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, the end-of-sentence id last."""
        return self.tokenizer.encode(text)

    def encode_target(self, text: str) -> list[int]:
        """Ids of a given prediction, the end-of-sentence id last."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Sequence[int], text: str) -> str:
        """The text of predicted ids.

        Args:
            ids: ids (L,); those after the first end-of-sentence id do not count.
            text: the text that they were predicted for.
        """
        return self.tokenizer.decode(ids)

    def search(self, config: DecodeConfig, static_shapes: bool = False) -> Search:
        """The search that `config` describes."""
        return Search(self.model, config, self.excluded_ids, static_shapes)

    def graph(self, jit_compile: bool) -> ServingGraph:
        """The graph that `save` writes."""
        search = self.search(self.config, static_shapes=jit_compile)
        return ServingGraph(
            search, self.tokenizer, self.max_source_length, jit_compile, self.output
        )

    @own_settings()
    def with_dtype(self, dtype: str) -> Self:
        """This predictor with weights and computation in another type.

        In bfloat16 weights take half the memory, and a CPU that multiplies bfloat16 or a GPU
        takes about half the time; softmax, normalisation and scores stay float32.

        Args:
            dtype: float32 or bfloat16.

        Raises:
            InputError: for another type.
        """
        if dtype not in ("float32", "bfloat16"):
            raise InputError(f"dtype must be float32 or bfloat16, got {dtype}.")
        if self.model.compute_dtype == dtype:
            return self
        model = type(self.model).from_config(self.model.get_config() | {"dtype": dtype})
        model.build()
        for weight, value in zip(model.weights, self.model.weights, strict=True):
            weight.assign(tf.cast(value.value, weight.dtype))
        return type(self)(model, self.tokenizer, self.config)

    def __call__(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[Prediction]:
        """The best prediction for each of `texts`, in their order.

        Texts of similar length are processed together; the order does not matter.

        Args:
            texts: any strings; an empty or blank one gives an empty prediction.
            prefixes: for each text the start of its prediction; "" for none.
            progress: called after each batch.
        """
        return [found[0] for found in self.n_best(texts, prefixes, progress)]

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Prediction]]:
        """As a call, but all `config.num_hypotheses` predictions for each text, best first.

        Their texts differ if `config.distinct` is set. At least one, and fewer than
        `config.num_hypotheses` when the search found fewer.
        """
        texts = as_texts(texts)
        if prefixes is not None:
            prefixes = as_texts(prefixes, "prefixes", texts)
        rows, cut = self._cut(map(self.encode, texts))
        prefix_rows = None
        if prefixes is not None:
            prefix_rows = [self.encode_target(prefix)[:-1] for prefix in prefixes]
        result = [[Prediction("", 0.0, is_cut)] for is_cut in cut]
        shortest = self.model.shortest_source
        lengths = [len(row) if len(row) >= shortest else 0 for row in rows]

        def run(indices: list[int]) -> tuple[list[list[Prediction]], int]:
            inputs = [pad([rows[i] for i in indices])]
            if prefix_rows is not None:
                inputs.append(pad([prefix_rows[i] for i in indices]))
            found = self._search(*inputs)
            ids, counts, scores = map(np.asarray, (found.ids, found.lengths, found.scores))
            predictions = [
                self._predictions(texts[i], ids[row], counts[row], scores[row], cut[i])
                for row, i in enumerate(indices)
            ]
            return predictions, int(counts[:, 0].sum())

        for indices, (predictions, tokens) in self._in_parallel(run, self._batches(lengths)):
            for i, each in zip(indices, predictions, strict=True):
                result[i] = each
            progress(len(indices), tokens)
        return result

    def _search(self, source: np.ndarray, *prefix: np.ndarray) -> Hypotheses:
        """Searches in a graph of which only the part for batches of this kind is traced."""
        size, length = source.shape
        self._require_memory(size, length)
        is_single = size == 1 and length <= self.model.absorbable_length
        return self._searches[is_single, 1 + len(prefix)](source, *prefix)

    def _require_memory(self, rows: int, length: int) -> None:
        """Raises an `InputError` for a batch whose search needs more memory than there is.

        In a step, W tokens of a sentence attend to W · L cached ones, and each has V logits.
        """
        decoder, config = self.model.config.decoder, self.config
        width = config.num_hypotheses if config.sampling else config.beam_size
        longest = int(length * config.max_length_ratio) + config.max_extra_length
        longest = min(longest, 2 * length + 50)  # caches grow, and most searches end by then
        cached = width * min(longest, config.max_length or longest)
        numbers = width * self.tokenizer.vocabulary_size
        if self.model.config.architecture == "transformer":
            per_token = 2 * decoder.num_key_value_heads * decoder.key_dim * decoder.num_layers
            numbers += cached * (per_token + decoder.num_heads * width)
        needed, total = 4 * rows * numbers, total_memory()  # float32
        if needed > total:
            raise InputError(
                f"a search with {width:,} hypotheses of up to {cached // width:,} tokens for "
                f"{rows:,} texts needs about {needed / 2**30:,.0f} GiB, and there are "
                f"{total / 2**30:,.0f}. Give a smaller decode.beam_size, decode.num_hypotheses, "
                "decode.max_length or decode.batch_size."
            )

    def score(
        self,
        texts: Sequence[str],
        predictions: Sequence[str],
        progress: Progress = no_progress,
    ) -> list[PairScore]:
        """The model's score of each of `predictions` for its text.

        For a prediction that a search without constraints found, this is the search's own
        score, if the tokenizer splits the text as the search did. A pair of two empty or blank
        texts has the score 0.

        Args:
            texts: the inputs.
            predictions: one per text.
            progress: called after each batch.
        """
        texts = as_texts(texts)
        predictions = as_texts(predictions, "predictions", texts)
        result: list[PairScore] = [PairScore(0.0, 0.0)] * len(texts)
        for (indices, _, target), found in self._in_parallel(
            lambda batch: self._score(*batch[1:]), self.pairs(texts, predictions)
        ):
            for i, *numbers in zip(indices, *map(np.asarray, found), strict=True):
                result[i] = PairScore(*map(float, numbers))
            progress(len(indices), int((target != PAD_ID).sum()))
        return result

    @own_settings()
    def attention(self, texts: Sequence[str], predictions: Sequence[str]) -> list[AttentionRecord]:
        """The attention weights with which the model computes each of `predictions` for its text.

        Args:
            texts: the inputs.
            predictions: one per text.

        Self-attention with `model.attention` linear has no weights: such maps are left out.
        """
        texts = as_texts(texts)
        predictions = as_texts(predictions, "predictions", texts)
        maps: list[list[AttentionMap]] = [[] for _ in texts]
        for indices, batch in self.attention_batches(texts, predictions):
            for kind, queries, keys, layers in batch:
                if not layers:
                    continue  # linear attention has no weights
                weights = np.stack([np.asarray(each, np.float32) for each in layers], 1)
                for i, *rows, matrix in zip(indices, queries, keys, weights, strict=True):
                    query, key = map(self.tokens, rows)
                    matrix = matrix[:, :, : len(query.pieces), : len(key.pieces)]
                    maps[i].append(AttentionMap(kind, query, key, matrix))
        return [
            AttentionRecord(text, prediction, found)
            for text, prediction, found in zip(texts, predictions, maps, strict=True)
        ]

    def attention_batches(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> Iterator[tuple[list[int], list[BatchAttention]]]:
        """Batches of pairs: their indices, and the attention of each kind."""
        for indices, source, target in self.pairs(texts, predictions):
            read = read_ids(target)
            found = self.model.run((source, read))
            kinds = [BatchAttention("cross", target, source, found.cross_attention)]
            if hasattr(found, "encoder_attention"):  # a recurrent model has no self-attention
                encoder = self.model.encoder.by_position(found.encoder_attention)
                decoder = self.model.decoder.by_position(found.decoder_attention)
                kinds = [
                    BatchAttention("encoder", source, source, encoder),
                    BatchAttention("decoder", target, read, decoder),
                    *kinds,
                ]
            yield indices, kinds

    def tokens(self, ids: Iterable[int]) -> Tokens:
        """The pieces and words of ids."""
        return Tokens.of((i for i in ids if i != PAD_ID), self.tokenizer, self.symbols)

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        """The signatures of the SavedModel, each with inputs made from `texts` and its outputs.

        The score signature gets the best predictions as targets.
        """
        texts = as_texts(texts)
        n_best = self.n_best(texts)
        best = [row[0].text for row in n_best]
        pairs = self.score(texts, best)
        text = {"text": list(texts)}
        truncated = [row[0].truncated for row in n_best]
        return {
            "serving_default": SignatureCase(
                text,
                {
                    self.output: best,
                    "score": [row[0].score for row in n_best],
                    "truncated": truncated,
                },
            ),
            "n_best": SignatureCase(
                text,
                {
                    f"{self.output}s": [[found.text for found in row] for row in n_best],
                    "scores": [[found.score for found in row] for row in n_best],
                    "truncated": truncated,
                },
            ),
            "score": SignatureCase(
                {"source": list(texts), "target": best},
                {
                    "score": [pair.score for pair in pairs],
                    "log_probability": [pair.log_probability for pair in pairs],
                },
            ),
        }

    def save(self, path: str | os.PathLike, jit_compile: bool = False) -> None:
        """Writes a SavedModel that takes and gives strings, tokenizer and search included.

        Its signatures `serving_default`, `n_best` and `score` return the results of a call,
        `n_best` and `score` of this predictor; see `ServingGraph`.

        Args:
            path: the folder to make.
            jit_compile: whether XLA compiles the search. This is faster for few sentences and
                small models; a stock TF Serving needs --xla_cpu_compilation_enabled=true for it.
        """
        require_threads()
        write_saved_model(self.graph(jit_compile), path)

    def _predictions(self, text: str, ids, lengths, scores, is_cut: bool) -> list[Prediction]:
        """The predictions for one text: its hypotheses (W, L), without the missing ones."""
        count = max(1, int((lengths > 0).sum()))
        truncated = is_cut or bool(lengths[0] > 0 and EOS_ID not in ids[0])
        found = [
            Prediction(self.decode(row, text), float(score), truncated)
            for row, score in zip(ids[:count], scores[:count], strict=True)
        ]
        if self.config.distinct:
            best: dict[str, Prediction] = {}
            for each in found:
                best.setdefault(each.text, each)
            found = list(best.values())
        return found[: self.config.num_hypotheses]

    def _cut(self, rows: Iterable[list[int]]) -> tuple[list[list[int]], list[bool]]:
        """Rows of at most `max_source_length` ids, the end token last, and whether each was cut."""
        rows, longest = list(rows), self.max_source_length
        cut = [len(ids) > longest for ids in rows]
        return [ids if len(ids) <= longest else [*ids[: longest - 1], EOS_ID] for ids in rows], cut

    def pairs(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        """Batches of pairs of texts: their indices, source ids and target ids."""
        sources, _ = self._cut(map(self.encode, texts))
        targets, _ = self._cut(map(self.encode_target, predictions))
        lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
        for indices in self._batches(lengths):
            yield indices, pad([sources[i] for i in indices]), pad([targets[i] for i in indices])

    def _in_parallel(
        self, run: Callable[[Batch], Result], batches: Iterable[Batch]
    ) -> Iterator[tuple[Batch, Result]]:
        """Each batch with its result, in order; several are computed at a time."""
        batches = list(batches)
        count = min(parallel_batches(self.config.parallel_batches), max(1, len(batches)))
        results = in_parallel(run, batches, count)
        return zip(batches, results, strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of rows that have a length, longest first.

        No row is shorter than half the longest of its batch.
        """
        batch: list[int] = []
        for i in sorted(
            filter(lengths.__getitem__, range(len(lengths))), key=lambda i: -lengths[i]
        ):
            longest = lengths[batch[0]] if batch else 0
            full = (
                len(batch) == self.config.batch_size
                or (len(batch) + 1) * longest > self.config.batch_tokens
            )
            if batch and (full or 2 * lengths[i] < longest):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch


def read_ids(target: np.ndarray) -> np.ndarray:
    """The ids (B, T) that a decoder reads to predict each of `target`, 0 at padding."""
    return np.where(target == PAD_ID, PAD_ID, shift_right(target))


def pad(rows: list[list[int]]) -> np.ndarray:
    """Rows of ids as one int32 array (B, L), padded at the end."""
    array = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
    for target, row in zip(array, rows, strict=True):
        target[: len(row)] = row
    return array
