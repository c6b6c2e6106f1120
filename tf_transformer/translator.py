"""Strings in, strings out: a tokenizer, a model and a search in one."""

import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.decoding import Hypotheses, SpecialIds, beam_search, greedy_search
from tf_transformer.layers import PAD_ID
from tf_transformer.model import Transformer
from tf_transformer.tokenizer import BOS_ID, EOS_ID, Tokenizer
from tf_transformer.training.checkpoint import load_average

SPECIAL = SpecialIds(pad=PAD_ID, start=BOS_ID, end=EOS_ID)


class Translation(NamedTuple):
    """A translation and its score: log-probability over length penalty."""

    text: str
    score: float


def search(
    model: Transformer, source: tf.Tensor, config: DecodeConfig, num_hypotheses: int = 1
) -> Hypotheses:
    """Translates a batch of ids.

    Args:
        model: the Transformer.
        source: int tensor (B, S), each row ending with the end id, then padding.
        config: beam size, length penalty and limit.
        num_hypotheses: hypotheses a sentence, at most the beam.

    Returns:
        `Hypotheses`; a sentence of n source tokens gets at most n + `max_extra_length` tokens
        (paper section 6.1; the end tokens count on both sides).
    """
    memory = model.project_memory(source, model.encode(source))
    lengths = ops.sum(ops.cast(ops.not_equal(source, PAD_ID), "int32"), axis=1)
    limits = lengths + config.max_extra_length
    max_length = ops.shape(source)[1] + config.max_extra_length
    if model.config.position == "learned":
        limits = ops.minimum(limits, model.config.max_length)
        max_length = ops.minimum(max_length, model.config.max_length)
    cache = model.start_cache(ops.shape(source)[0], config.beam_size, max_length)

    def step(ids, cache, index):
        return model.decode_step(ids, cache, index, memory)

    if config.beam_size == 1:
        return greedy_search(step, cache, limits, max_length, SPECIAL, config.length_penalty)
    return beam_search(
        *(step, cache, limits, max_length, SPECIAL),
        beam_size=config.beam_size,
        alpha=config.length_penalty,
        num_hypotheses=num_hypotheses,
    )


class Translator:
    """Translates lists of strings.

    Args:
        model: the built Transformer.
        tokenizer: its tokenizer.
        config: how to search.

    Example:
        >>> translator = Translator.from_run("runs/demo")
        >>> translator(["twenty-one"])[0].text
        'einundzwanzig'
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer, config: DecodeConfig):
        self.model = model
        self.tokenizer = tokenizer
        self.config = config
        # A learned position table ends; sinusoids do not. Longer sources are cut.
        self.max_source_length = config.max_source_length
        if model.config.position == "learned":
            self.max_source_length = min(self.max_source_length, model.config.max_length)
        self._search = tf.function(
            lambda source: search(model, source, config),
            input_signature=[tf.TensorSpec((None, None), tf.int32)],
        )

    @classmethod
    def from_run(cls, run_dir: str | os.PathLike, **decode_options) -> "Translator":
        """Loads a run's tokenizer and the average of its newest checkpoints.

        Args:
            run_dir: the run's folder.
            **decode_options: fields of `DecodeConfig` to replace, where not None.

        Raises:
            InputError: when the folder is not a run, or an option is out of range.
        """
        run_dir = pathlib.Path(run_dir)
        config = Config.load(run_dir)
        options = {name: value for name, value in decode_options.items() if value is not None}
        decode = replace(config.decode, **options)
        tokenizer = Tokenizer.load(run_dir / "tokenizer.model")
        model = Transformer(tokenizer.vocabulary_size, config.model)
        model.build()
        load_average(run_dir, model, decode.average)
        return cls(model, tokenizer, decode)

    def __call__(
        self, texts: Sequence[str], progress: Callable[[int], object] = lambda done: None
    ) -> list[Translation]:
        """Translates `texts`; item n of the result translates item n.

        Sentences of like length are translated together, whatever their order.

        Args:
            texts: any strings; an empty or blank one gives an empty translation.
            progress: called with the number of sentences newly translated.
        """
        rows = [self._truncate(self.tokenizer.encode(text)) for text in texts]
        result: list[Translation] = [Translation("", 0.0)] * len(texts)
        for indices in self._batches(rows):
            source = np.full((len(indices), max(len(rows[i]) for i in indices)), PAD_ID, np.int32)
            for row, i in zip(source, indices, strict=True):
                row[: len(rows[i])] = rows[i]
            found = self._search(tf.constant(source))
            for i, ids, score in zip(
                indices, found.ids[:, 0].numpy(), found.scores[:, 0].numpy(), strict=True
            ):
                result[i] = Translation(self.tokenizer.decode(ids), float(score))
            progress(len(indices))
        return result

    def save(self, path: str | os.PathLike) -> None:
        """Writes a SavedModel that takes and gives strings, tokenizer and search included.

        Its signature `serving_default` takes `text`, string (B,), and gives `translation`,
        string (B,), and `score`, float32 (B,): what calling this translator gives. The graph
        holds core TensorFlow ops and tensorflow-text's SentencePiece ops and no others.

        Args:
            path: the folder to make.
        """
        graph = _ServingGraph(self)
        archive = keras.export.ExportArchive()
        archive.track(graph)  # without this a session finds neither variables nor tokenizer
        text = tf.TensorSpec((None,), tf.string, name="text")
        archive.add_endpoint("serving_default", graph.translate, input_signature=[text])
        archive.write_out(str(path), verbose=False)

    def _truncate(self, ids: list[int]) -> list[int]:
        longest = self.max_source_length
        return ids if len(ids) <= longest else [*ids[: longest - 1], EOS_ID]

    def _batches(self, rows: list[list[int]]) -> Iterator[list[int]]:
        """Indices of rows with text, longest first, no row under half its batch's longest."""
        batch: list[int] = []
        with_text = (i for i, row in enumerate(rows) if len(row) > 1)
        for i in sorted(with_text, key=lambda i: -len(rows[i])):
            full = len(batch) == self.config.batch_size
            if batch and (full or 2 * len(rows[i]) < len(rows[batch[0]])):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch


class _ServingGraph(tf.Module):
    """`Translator.__call__` as one graph on string tensors."""

    def __init__(self, translator: Translator):
        super().__init__()
        # Here and not at the top: training and translation do without tensorflow-text.
        import tensorflow_text

        self.model = translator.model
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(translator.tokenizer.model)
        self._config = translator.config
        self._max_source_length = translator.max_source_length

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = self._tokenizer.tokenize(text)[:, : self._max_source_length - 1]  # ragged
        empty = tf.equal(ids.row_lengths(), 0)  # (B,)
        end = tf.fill(tf.stack([ids.nrows(), 1]), EOS_ID)
        source = tf.concat([ids, end], axis=1).to_tensor(PAD_ID)  # (B, S)
        best = search(self.model, source, self._config)
        return {
            "translation": tf.where(
                empty, "", self._detokenize(best.ids[:, 0], best.lengths[:, 0])
            ),
            "score": tf.where(empty, 0.0, best.scores[:, 0]),
        }

    def _detokenize(self, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Ids (B, L), of which `lengths` count, to strings (B,)."""
        inside = tf.sequence_mask(lengths, tf.shape(ids)[1])
        text_ids = tf.logical_and(inside, tf.not_equal(ids, EOS_ID))
        return self._tokenizer.detokenize(tf.ragged.boolean_mask(ids, text_ids))


def greedy_translate(
    model: Transformer, tokenizer: Tokenizer
) -> Callable[[Sequence[str]], list[str]]:
    """A function that translates with a model in training, for its validation BLEU."""
    translator = Translator(model, tokenizer, DecodeConfig(beam_size=1))
    return lambda texts: [translation.text for translation in translator(texts)]
