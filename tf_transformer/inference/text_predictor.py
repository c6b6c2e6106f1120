"""Texts in, texts out: a tokenizer, a model and a search in one."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.inference.batch_predictor import BatchAttention, BatchPredictor, pad
from tf_transformer.inference.predictor import (
    PairScore,
    Prediction,
    Progress,
    SignatureCase,
    as_texts,
    no_progress,
)
from tf_transformer.inference.search import Search, score_pairs, with_spare_hypotheses
from tf_transformer.inference.text_graph import ServingGraph, write_saved_model
from tf_transformer.machine.heap import total_memory
from tf_transformer.machine.threads import require_threads
from tf_transformer.text.normalization import clean, has_letters, is_blank
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer


class TextPredictor(BatchPredictor):
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
        copies: whether a text without letters is its own prediction, with the score 0.

    Raises:
        InputError: when the configuration names a piece that the vocabulary does not have.
    """

    output: ClassVar[str] = "prediction"
    copies: bool = False

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, config: DecodeConfig):
        super().__init__(model, tokenizer, config)
        for name in ("top_k",) if config.sampling else ("beam_size",):
            if (value := getattr(config, name)) > tokenizer.vocabulary_size:
                raise InputError(
                    f"decode.{name} ({value:,}) must be at most the {tokenizer.vocabulary_size:,} "
                    "tokens of the vocabulary."
                )
        self.excluded_ids = tuple(tokenizer.piece_to_id(piece) for piece in config.excluded_tokens)
        if config.avoid_unknown:
            self.excluded_ids += (UNK_ID,)
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

    def encode_target(self, text: str) -> list[int]:
        """Ids of a given prediction, the end-of-sentence id last."""
        return self.tokenizer.encode(text)

    def encode_prefix(self, text: str, prefix: str) -> list[int]:
        """Ids of the start of a prediction for a text, as `Search` takes them."""
        return self.encode_target(prefix)[:-1] + [BOS_ID] * self.tokenizer.ends_in_space(prefix)

    def decode(self, ids: Sequence[int], text: str) -> str:
        """The text of predicted ids.

        Args:
            ids: ids (L,); those after the first end-of-sentence id do not count.
            text: the text that they were predicted for.
        """
        return self.tokenizer.decode(ids)

    def search(self, config: DecodeConfig, static_shapes: bool = False) -> Search:
        """The search that `config` describes."""
        return Search(
            *(self.model, config, self.excluded_ids, static_shapes),
            word_starts=self.tokenizer.word_starts,
        )

    def graph(self, jit_compile: bool) -> ServingGraph:
        """The graph that `save` writes."""
        search = self.search(self.config, static_shapes=jit_compile)
        return ServingGraph(
            search, self.tokenizer, self.max_source_length, jit_compile, self.output, self.copies
        )

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
            prefix_rows = list(map(self.encode_prefix, texts, prefixes))
        result = [[Prediction("", 0.0, cut=is_cut)] for is_cut in cut]
        shortest = self.model.shortest_source
        lengths = [len(row) if len(row) >= shortest else 0 for row in rows]
        for i, text in enumerate(texts):
            if self._is_copied(text) and not (prefixes and prefixes[i]):
                result[i], lengths[i] = [Prediction(clean(text), 0.0)], 0

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

    def _is_copied(self, text: str) -> bool:
        is_text = not (is_blank(text) or has_letters(text))
        return self.copies and is_text

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
        sources, targets, cut = self._cut_pairs(texts, predictions)
        result = [PairScore(0.0, 0.0, is_cut) for is_cut in cut]
        for (indices, _, target), found in self._in_parallel(
            lambda batch: self._score(*batch[1:]), self._pair_batches(sources, targets)
        ):
            for i, score, total in zip(indices, *map(np.asarray, found), strict=True):
                result[i] = PairScore(float(score), float(total), cut[i])
            progress(len(indices), int((target != PAD_ID).sum()))
        return result

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
        at_limit = bool(lengths[0] > 0 and EOS_ID not in ids[0])
        found = [
            Prediction(self.decode(row, text), float(score), cut=is_cut, at_limit=at_limit)
            for row, score in zip(ids[:count], scores[:count], strict=True)
        ]
        if self.config.distinct:
            best: dict[str, Prediction] = {}
            for each in found:
                best.setdefault(each.text, each)
            found = list(best.values())
        return found[: self.config.num_hypotheses]

    def pairs(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        """Batches of pairs of texts: their indices, source ids and target ids."""
        sources, targets, _ = self._cut_pairs(texts, predictions)
        return self._pair_batches(sources, targets)

    def _cut_pairs(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]], list[bool]]:
        """Ids of texts and of given predictions, and whether one of both was cut."""
        sources, cut = self._cut(map(self.encode, texts))
        targets, target_cut = self._cut(map(self.encode_target, predictions))
        return sources, targets, [any(pair) for pair in zip(cut, target_cut, strict=True)]

    def _pair_batches(
        self, sources: list[list[int]], targets: list[list[int]]
    ) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
        for indices in self._batches(lengths):
            yield indices, pad([sources[i] for i in indices]), pad([targets[i] for i in indices])


def read_ids(target: np.ndarray) -> np.ndarray:
    """The ids (B, T) that a decoder reads to predict each of `target`, 0 at padding."""
    return np.where(target == PAD_ID, PAD_ID, shift_right(target))
