"""Translations: strings in, strings out, and alignments of their words."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.attention_record import Tokens
from tf_transformer.inference.predictor import as_texts
from tf_transformer.inference.saved_translator import SavedTranslator, Translation
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import clean
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.word_alignment import Link, Unit

__all__ = ["Alignment", "SavedTranslator", "Translation", "Translator", "build_model"]


class Alignment(NamedTuple):
    """The attention to the source with which the decoder predicts each token of the target."""

    source: Tokens  # S pieces, the end token last
    target: Tokens  # T pieces, the end token last
    weights: np.ndarray  # float32 (T, S) of pieces, rows sum to 1

    def links(self, unit: Unit = "words") -> list[Link]:
        """(source, target) positions, those of the target in order.

        Each piece of the target but the end is linked to the piece of the source that it attends to
        most, and words are linked if any of their pieces are.

        Args:
            unit: whether the positions count words, those of `str.split()`, or pieces.
        """
        if len(self.source.pieces) < 2:
            return []
        best = enumerate(self.weights[:-1, :-1].argmax(axis=1).tolist())
        if unit == "pieces":
            return [(source, target) for target, source in best]
        words = {(self.target.word_of[t], self.source.word_of[s]) for t, s in best}
        return [(source, target) for target, source in sorted(words)]


def build_model(config: Config, codec: Codec, dtype: str) -> Transformer | RecurrentModel:
    """A new model of `config.model.architecture` with all its weights."""
    make = Transformer if config.model.architecture == "transformer" else RecurrentModel
    source, target = map(codec.size, ("source", "target"))
    model = make(target, config.model, source_vocabulary_size=source, dtype=dtype)
    model.build()
    return model


class Translator(TextPredictor):
    """Translates lists of strings.

    Args:
        model: the built Transformer, or a model with the same interface.
        codec: its tokenizers.
        config: how to search.
        copy_without_letters: whether a text without letters is its own translation, with the
            score 0.

    Raises:
        InputError: when the configuration names a piece that the vocabulary does not have.

    Example:
        >>> translator = Translator.from_run("runs/demo")
        >>> translator(["twenty-one"])[0].text
        'einundzwanzig'
    """

    output = "translation"
    build_model = staticmethod(build_model)
    of_task = ("copy_without_letters",)

    def __init__(
        self,
        model: Transformer | RecurrentModel,
        codec: Codec,
        config: DecodeConfig,
        copy_without_letters: bool = False,
    ):
        self.copies = copy_without_letters
        self.own_options = {"copy_without_letters": copy_without_letters}
        super().__init__(model, codec, config)
        ids = tf.TensorSpec((None, None), tf.int32)
        self._attention = tf.function(
            lambda source, target: tf.stack(
                [tf.reduce_mean(w, 1) for w in model.run((source, target)).cross_attention], 1
            ),
            input_signature=[ids, ids],
            autograph=False,
        )

    @staticmethod
    def load(path: str | os.PathLike) -> SavedTranslator:
        """An exported translator: the SavedModel that `save` or `python -m export` wrote.

        Raises:
            InputError: when the folder holds no such SavedModel.
        """
        return SavedTranslator(path)

    @own_settings()
    def align(
        self, texts: Sequence[str], translations: Sequence[str], layer: int = -1
    ) -> list[Alignment]:
        """The decoder's attention to each text, for each token of its translation.

        Args:
            texts: sources.
            translations: one translation per source.
            layer: the decoder layer whose cross-attention is taken, averaged over its heads.

        Raises:
            InputError: when there is no such layer.
        """
        texts = as_texts(texts)
        translations = as_texts(translations, "translations", texts)
        nothing = Alignment(Tokens([], [], []), Tokens([], [], []), np.zeros((0, 0), np.float32))
        result = [nothing] * len(texts)
        for indices, source, target in self.pairs(texts, translations):
            of_layers = np.asarray(self._attention(source, shift_right(target)))
            if layer not in range(-of_layers.shape[1], of_layers.shape[1]):
                raise InputError(
                    f"expected a layer of the decoder from 0 to {of_layers.shape[1] - 1}, or -1 "
                    f"for the last, got {layer!r:.80}."
                )
            weights = of_layers[:, layer]
            for i, *ids, matrix in zip(indices, source, target, weights, strict=True):
                both = (texts[i], translations[i])
                sides = ("source", "target")
                text, translation = map(self._tokens_in_words, both, ids, sides)
                matrix = matrix[: len(translation.pieces), : len(text.pieces)]
                result[i] = Alignment(text, translation, matrix)
        return result

    def _tokens_in_words(self, text: str, ids: np.ndarray, field: str) -> Tokens:
        """The pieces of a text, which may be cut, with the words of `str.split()`."""
        pieces = self.tokens(ids, field).pieces
        words = [*clean(text).split(), pieces[-1]]
        word_of = self.codec[field].word_of_pieces(text)[: len(pieces) - 1]
        return Tokens(pieces, words, [*word_of, len(words) - 1])
