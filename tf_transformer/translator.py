"""Strings in, strings out: a tokenizer, a model and a search in one."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.export.graph import ServingGraph, write_saved_model
from tf_transformer.models.transformer import Transformer
from tf_transformer.predictor import PairScore, Progress, SignatureCase, no_progress, require_texts
from tf_transformer.saved_translator import SavedTranslator, Translation
from tf_transformer.search import Search, score_pairs, with_spare_hypotheses
from tf_transformer.sequences import shift_right
from tf_transformer.special_ids import EOS_ID, PAD_ID, UNK_ID
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.weights import load_model


class Alignment(NamedTuple):
    """The attention to the source with which the decoder predicts each token of the target."""

    source: list[str]  # S pieces, the end token last
    target: list[str]  # T pieces, the end token last
    weights: np.ndarray  # float32 (T, S), rows sum to 1

    def links(self) -> list[tuple[int, int]]:
        """(source, target) positions: each target token but the end, with its likeliest source."""
        best = self.weights[:-1, :-1].argmax(axis=1) if len(self.source) > 1 else []
        return [(int(source), target) for target, source in enumerate(best)]


class Translator:
    """Translates lists of strings.

    Args:
        model: the built Transformer.
        tokenizer: its tokenizer.
        config: how to search.

    Raises:
        InputError: when the configuration names a piece that the vocabulary does not have.

    Example:
        >>> translator = Translator.from_run("runs/demo")
        >>> translator(["twenty-one"])[0].text
        'einundzwanzig'
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer, config: DecodeConfig):
        self.model = model
        self.tokenizer = tokenizer
        self.config = config
        self.excluded_ids = tuple(tokenizer.piece_to_id(piece) for piece in config.excluded_tokens)
        if config.avoid_unknown:
            self.excluded_ids += (UNK_ID,)
        # A learned position table has a last row; sinusoids have none.
        self.max_source_length = config.max_source_length
        if model.config.position == "learned":
            self.max_source_length = min(self.max_source_length, model.config.max_length)
        ids = tf.TensorSpec((None, None), tf.int32)
        search = Search(model, with_spare_hypotheses(config), self.excluded_ids)
        self._search = tf.function(lambda source: search(source), input_signature=[ids])
        self._continue = tf.function(search.__call__, input_signature=[ids, ids])
        self._score = tf.function(
            lambda source, target: score_pairs(model, source, target, config.length_penalty),
            input_signature=[ids, ids],
        )
        self._attention = tf.function(
            lambda source, target: tf.stack(
                [tf.reduce_mean(w, 1) for w in model.run((source, target)).cross_attention], 1
            ),
            input_signature=[ids, ids],
        )

    @classmethod
    def from_run(
        cls, run_dir: str | os.PathLike, dtype: str = "float32", **decode_options: Any
    ) -> "Translator":
        """Loads a run's tokenizer and the weights that `DecodeConfig.average` names.

        Args:
            run_dir: the run's folder.
            dtype: of weights and computation, float32 or bfloat16.
            **decode_options: fields of `DecodeConfig` that replace the run's own; None keeps those.

        Raises:
            InputError: when the folder is not a run's folder, or an option is out of range.
        """
        return cls(*load_model(run_dir, build_transformer, **decode_options)).with_dtype(dtype)

    @staticmethod
    def load(path: str | os.PathLike) -> SavedTranslator:
        """An exported translator: the SavedModel that `save` or `python -m export` wrote.

        Raises:
            InputError: when the folder holds no such SavedModel.
        """
        return SavedTranslator(path)

    def with_dtype(self, dtype: str) -> "Translator":
        """This translator with weights and computation in another type.

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
        model = Transformer.from_config(self.model.get_config() | {"dtype": dtype})
        model.build()
        for weight, value in zip(model.weights, self.model.weights, strict=True):
            weight.assign(tf.cast(value.value, weight.dtype))
        return Translator(model, self.tokenizer, self.config)

    def __call__(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[Translation]:
        """Translates `texts`; item n of the result translates item n.

        Sentences of similar length are translated together; the order does not matter.

        Args:
            texts: any strings; an empty or blank one gives an empty translation.
            prefixes: for each text the start of its translation; "" for none.
            progress: called after each batch.
        """
        return [found[0] for found in self.n_best(texts, prefixes, progress)]

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Translation]]:
        """As a call, but all `config.num_hypotheses` translations of each text, best first.

        Their texts differ if `config.distinct` is set. At least one, and fewer than
        `config.num_hypotheses` when the search found fewer.
        """
        require_texts(texts=texts, prefixes=prefixes)
        rows, cut = self._encode_all(texts)
        prefix_rows = None
        if prefixes is not None:
            prefix_rows = [self.tokenizer.encode(prefix)[:-1] for prefix in prefixes]
        result = [[Translation("", 0.0, is_cut)] for is_cut in cut]
        for indices in self._batches([len(row) if len(row) > 1 else 0 for row in rows]):
            source = _pad([rows[i] for i in indices])
            if prefix_rows is None:
                found = self._search(source)
            else:
                found = self._continue(source, _pad([prefix_rows[i] for i in indices]))
            ids, lengths, scores = (
                np.asarray(field) for field in (found.ids, found.lengths, found.scores)
            )
            for row, i in enumerate(indices):
                result[i] = self._translations(ids[row], lengths[row], scores[row], cut[i])
            progress(len(indices), int(lengths[:, 0].sum()))
        return result

    def score(
        self,
        texts: Sequence[str],
        translations: Sequence[str],
        progress: Progress = no_progress,
    ) -> list[PairScore]:
        """The model's score of each of `translations`, as a translation of its text.

        For a translation that a search without constraints found, this is the search's own
        score, if the tokenizer splits the text as the search did. A pair of two empty or blank
        texts has the score 0.

        Args:
            texts: sources.
            translations: one translation per source.
            progress: called after each batch.
        """
        result: list[PairScore] = [PairScore(0.0, 0.0)] * len(texts)
        for indices, source, target in self._pairs(texts, translations):
            found = self._score(source, target)
            for i, *numbers in zip(indices, *map(np.asarray, found), strict=True):
                result[i] = PairScore(*map(float, numbers))
            progress(len(indices), int((target != PAD_ID).sum()))
        return result

    def align(
        self, texts: Sequence[str], translations: Sequence[str], layer: int = -1
    ) -> list[Alignment]:
        """The decoder's attention to each text, for each token of its translation.

        Args:
            texts: sources.
            translations: one translation per source.
            layer: the decoder layer whose cross-attention is taken, averaged over its heads.
        """
        result: list[Alignment] = [Alignment([], [], np.zeros((0, 0), np.float32))] * len(texts)
        for indices, source, target in self._pairs(texts, translations):
            weights = np.asarray(self._attention(source, shift_right(target)))[:, layer]
            for i, *ids, matrix in zip(indices, source, target, weights, strict=True):
                pieces, translated = (
                    [self.tokenizer.piece(token) for token in row if token != PAD_ID] for row in ids
                )
                matrix = matrix[: len(translated), : len(pieces)]
                result[i] = Alignment(pieces, translated, matrix)
        return result

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        """The signatures of the SavedModel, each with inputs made from `texts` and its outputs.

        The score signature gets the best translations as targets.
        """
        n_best = self.n_best(texts)
        best = [row[0].text for row in n_best]
        pairs = self.score(texts, best)
        text = {"text": list(texts)}
        truncated = [row[0].truncated for row in n_best]
        return {
            "serving_default": SignatureCase(
                text,
                {
                    "translation": best,
                    "score": [row[0].score for row in n_best],
                    "truncated": truncated,
                },
            ),
            "n_best": SignatureCase(
                text,
                {
                    "translations": [[found.text for found in row] for row in n_best],
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
        `n_best` and `score` of this translator; see `ServingGraph`.

        Args:
            path: the folder to make.
            jit_compile: whether XLA compiles the search. This is faster for few sentences and
                small models; a stock TF Serving needs --xla_cpu_compilation_enabled=true for it.
        """
        search = Search(self.model, self.config, self.excluded_ids, static_shapes=jit_compile)
        graph = ServingGraph(search, self.tokenizer, self.max_source_length, jit_compile)
        write_saved_model(graph, path)

    def _translations(self, ids, lengths, scores, is_cut: bool) -> list[Translation]:
        """The translations of one sentence: its hypotheses (W, L), without the missing ones."""
        count = max(1, int((lengths > 0).sum()))
        truncated = is_cut or bool(lengths[0] > 0 and EOS_ID not in ids[0])
        found = [
            Translation(self.tokenizer.decode(row), float(score), truncated)
            for row, score in zip(ids[:count], scores[:count], strict=True)
        ]
        if self.config.distinct:
            best: dict[str, Translation] = {}
            for each in found:
                best.setdefault(each.text, each)
            found = list(best.values())
        return found[: self.config.num_hypotheses]

    def _encode_all(self, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
        """Ids of texts with the end token, and whether each was cut."""
        longest = self.max_source_length
        rows = list(map(self.tokenizer.encode, texts))
        cut = [len(ids) > longest for ids in rows]
        return [ids if len(ids) <= longest else [*ids[: longest - 1], EOS_ID] for ids in rows], cut

    def _pairs(
        self, texts: Sequence[str], translations: Sequence[str]
    ) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        """Batches of pairs: their indices, source ids and target ids."""
        require_texts(texts=texts, translations=translations)
        (sources, _), (targets, _) = map(self._encode_all, (texts, translations))
        lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
        for indices in self._batches(lengths):
            yield indices, _pad([sources[i] for i in indices]), _pad([targets[i] for i in indices])

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


def _pad(rows: list[list[int]]) -> np.ndarray:
    """Rows of ids as one int32 array (B, L), padded at the end."""
    array = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
    for target, row in zip(array, rows, strict=True):
        target[: len(row)] = row
    return array


def build_transformer(config: Config, vocabulary_size: int, dtype: str) -> Transformer:
    """A new Transformer with all its weights."""
    model = Transformer(vocabulary_size, config.model, dtype=dtype)
    model.build()
    return model
