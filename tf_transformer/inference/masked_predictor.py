"""Restored texts: a tokenizer and a masked language model in one object."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference import predictor
from tf_transformer.inference.encoder_predictor import EncoderPredictor
from tf_transformer.inference.inputs import as_texts
from tf_transformer.inference.text_graph import IDS, Outputs, Traced
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.models.encoder_only import MaskedLanguageModel
from tf_transformer.text.codec import Codec
from tf_transformer.text.sequences import token_counts
from tf_transformer.text.special_ids import BLANK, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer


class Restored(NamedTuple):
    """A text with its masked words restored by a model."""

    text: str
    log_probability: float  # of the original ids at the masked places, nats
    correct: int  # number of masked ids that were restored correctly
    masked: int  # number of masked ids
    truncated: bool  # whether the text was cut


class MaskedPredictor(EncoderPredictor):
    """Masks the words that validation masks, and restores them.

    Each masked id becomes the likeliest id at its place, independently of the other masked ids. The
    score is the log-probability of the original ids. An export gives a vector for each text: the
    mean of the encoder's states over all tokens, without masks. The model is a
    `MaskedLanguageModel`. Arguments are those of `Predictor`.
    """

    def __init__(self, model: MaskedLanguageModel, codec: Codec, config: DecodeConfig):
        super().__init__(model, codec, config)
        self._words = WordNumbers(codec["text"])
        self._fill = Traced(own_settings()(self._restore), IDS, IDS)

    def outputs(self, ids: tf.Tensor) -> Outputs:
        """Computes `vector`, float32 (B, D), from ids, int32 (B, S)."""
        return {"vector": self.model.encoder.mean(ids)}

    def restore(
        self, texts: Sequence[str], progress: predictor.Progress = predictor.no_progress
    ) -> list[Restored]:
        """Masks words of each text, and restores them."""
        texts = as_texts(texts)
        rows, cut = self.encode([texts])
        result = [Restored("", 0.0, 0, 0, False)] * len(rows)

        def run(indices: list[int]) -> Any:
            batch = [rows[i] for i in indices]
            return self._fill(predictor.pad(batch), predictor.pad(list(map(self._words, batch))))

        lengths = [len(row) for row in rows]
        for indices, restored in self._in_parallel(run, self._batches(lengths)):
            for i, text, *numbers in zip(indices, *map(np.asarray, restored), strict=True):
                log_probability, correct, masked = map(float, numbers)
                result[i] = Restored(
                    text.decode("utf-8"), log_probability, int(correct), int(masked), cut[i]
                )
            progress(len(indices), sum(lengths[i] for i in indices))
        return result

    def _n_best(self, call: predictor.Call) -> predictor.NBest:
        restored = self.restore(call.texts, call.progress)
        return [
            predictor.predictions_of([x.text], [x.log_probability], x.truncated) for x in restored
        ]

    def _scores(self, call: predictor.Call) -> list[predictor.PairScore]:
        raise InputError(
            "a masked language model cannot score another text. --scores_output writes the scores "
            "of the input texts."
        )

    def signatures(self, texts: Sequence[str]) -> dict[str, predictor.SignatureCase]:
        texts = as_texts(texts)
        rows, cut = self.encode([texts])
        vectors = self.arrays(rows)["vector"].tolist()
        outputs = {"vector": vectors, "truncated": cut}
        return {"serving_default": predictor.SignatureCase({"text": list(texts)}, outputs)}

    def _restore(self, ids: tf.Tensor, words: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Restored strings; log-probability, number of correct and of masked ids, each (B,)."""
        inputs, labels = self.model.masking(ids, words, training=False)
        log_p = ops.log_softmax(ops.cast(self.model(inputs), "float32"), axis=-1)  # (B, S, V)
        best = ops.argmax(log_p, axis=-1)
        masked = ops.not_equal(labels, PAD_ID)
        of_labels = tf.gather(log_p, labels, batch_dims=2)
        restored = ops.where(masked, ops.cast(best, "int32"), ids)
        in_graph = self._graph.codec["text"]
        return (
            in_graph.decode(in_graph.text_ids(restored, token_counts(ids))),
            ops.sum(ops.where(masked, of_labels, 0.0), axis=1),
            ops.sum(ops.cast(ops.logical_and(masked, best == labels), "float32"), axis=1),
            ops.sum(ops.cast(masked, "float32"), axis=1),
        )


class WordNumbers:
    """Numbers the words in a row of a tokenizer's ids: for each id, from 1; 0 for special ids.

    A word begins after a space. A word also begins where letters or digits meet other characters,
    so a full stop is a word. Text without spaces, such as Japanese, is one word between punctuation
    characters.

    Example:
        >>> tokenizer = Tokenizer.train(["a house, ein Haus"], vocabulary_size=300)
        >>> ids = tokenizer.encode("Haus, house")
        >>> words = WordNumbers(tokenizer)(ids)
        >>> [tokenizer.decode([i for i, n in zip(ids, words) if n == k]) for k in (1, 2, 3)]
        ['Haus', ',', 'house']
    """

    def __init__(self, tokenizer: Tokenizer):
        pieces = tokenizer.pieces
        self._after_blank = np.array([piece.startswith(BLANK) for piece in pieces])
        self._is_blank = np.array([piece == BLANK for piece in pieces])
        self._has_letters = np.array(list(map(_has_letters, pieces)))

    def __call__(self, ids: Sequence[int] | np.ndarray) -> list[int]:
        row = np.asarray(ids, np.int64)
        letters, before = self._has_letters[row], row[:-1]
        starts = self._after_blank[row]
        starts[1:] |= (letters[1:] != letters[:-1]) & ~self._is_blank[before]
        starts[:1] = True
        return np.where(row > UNK_ID, np.cumsum(starts), 0).tolist()


def _has_letters(piece: str) -> bool:
    """Whether a piece has a letter or digit. Bytes of characters beyond ASCII count as letters."""
    if byte := re.fullmatch("<0x(..)>", piece):
        value = int(byte[1], 16)
        return value >= 128 or chr(value).isalnum()
    return any(map(str.isalnum, piece))
