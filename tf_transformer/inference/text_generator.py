"""Continues and scores texts with a language model."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding.coverage import require_no_penalty
from tf_transformer.errors import InputError
from tf_transformer.inference import predictor
from tf_transformer.inference.generation import GenerationGraph, Windows
from tf_transformer.inference.inputs import Input, as_texts
from tf_transformer.inference.search import log_probabilities, penalty_of
from tf_transformer.inference.search_graph import Prepared
from tf_transformer.inference.text_graph import IDS, STRINGS, Traced
from tf_transformer.inference.text_predictor import TextPredictor, read_ids
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings
from tf_transformer.text.special_ids import BOS_ID


class TextScore(NamedTuple):
    """The log-probability of a text, and its number of tokens."""

    log_probability: float  # sum over the tokens, nats
    tokens: int  # with the end token


class TextGenerator(TextPredictor):
    """Continues prompts; an empty text is a prompt, too.

    The whole text is prompt + prediction: a prediction that begins with a new word begins with a
    space. After a prompt that ends in a space, a new word follows. A prompt longer than
    `max_source_length` is cut to its last tokens. The constraints of a `DecodeConfig` apply to
    predictions only, which may repeat the prompt.

    Args:
        model: the built `LanguageModel`.
        codec: the codec of the model.
        config: options of the search.

    Raises:
        InputError: for `coverage_penalty`, or a piece that the vocabulary does not have.

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
        self._windows_of_texts = Traced(self._graph.windows_of_texts, STRINGS)
        self._windows_of_rests = Traced(self._graph.windows_of_rests, STRINGS, STRINGS)
        self._log_probabilities = Traced(functools.partial(log_probabilities, model), row, IDS, row)

    def _read(self, texts: list[str], given: predictor.Given) -> Prepared:
        """Encodes prompts and prefixes, which must fit into the positions of the model."""
        inputs = super()._read(texts, given)
        most = self.model.position.max_length
        if most and "prefix" in inputs.problem:
            prefixes = inputs.problem["prefix"].lists()
            rows = zip(texts, inputs.ids.lists(), prefixes, strict=True)
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

    def _scores(
        self, texts: list[str], predictions: list[str], progress: predictor.Progress
    ) -> list[predictor.PairScore]:
        """The scores of given continuations, with the end token; texts may have any length."""
        both = map(as_strings, (texts, predictions))
        windows, lengths = self._windows_of_rests(*both)
        totals = self._score_windows(windows, len(texts), progress)
        alpha, offset = penalty_of(self.config)
        return [
            predictor.PairScore(total / ((offset + length) / (offset + 1)) ** alpha, total)
            for total, length in zip(totals, lengths.numpy().tolist(), strict=True)
        ]

    def attention_batches(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> predictor.Attentions:
        """The decoder's attention to prompts with predictions."""
        prompts, rests, _ = self._pairs(texts, predictions)
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
        therefore predicted from at least half a window.

        Args:
            texts: any strings; an empty text is the end token alone.
            progress: function that is called after each batch.
        """
        texts = as_texts(texts)
        windows, lengths = self._windows_of_texts(as_strings(texts))
        totals = self._score_windows(windows, len(texts), progress)
        return list(map(TextScore, totals, lengths.numpy().tolist()))

    def _score_windows(
        self, windows: Windows, texts: int, progress: predictor.Progress
    ) -> list[float]:
        """The log-probability of each text, summed over its windows."""
        ids = windows.ids.lists()
        text, before, scored_from = (
            field.numpy() for field in (windows.text, windows.before, windows.scored_from)
        )
        totals, remaining = np.zeros(texts), np.bincount(text, minlength=texts)

        def run(indices: list[int]) -> np.ndarray:
            rows = predictor.pad([ids[i] for i in indices])
            return self._log_probabilities(before[indices], rows, scored_from[indices]).numpy()

        lengths = list(map(len, ids))
        for indices, log_p in self._in_parallel(run, self._batches(lengths)):
            of_text = text[indices]
            np.add.at(totals, of_text, log_p)
            np.subtract.at(remaining, of_text, 1)
            done = (remaining[np.unique(of_text)] == 0).sum()
            progress(int(done), sum(lengths[i] for i in indices))
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
