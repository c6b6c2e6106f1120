"""Translations of strings, and alignments of their words."""

import itertools
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import NEG_INF
from tf_transformer.errors import InputError
from tf_transformer.inference.alignment import Alignment
from tf_transformer.inference.attention_record import Tokens
from tf_transformer.inference.capitals_graph import CapitalsGraph
from tf_transformer.inference.inputs import as_texts
from tf_transformer.inference.notices import Notice, in_order
from tf_transformer.inference.parts import Parts
from tf_transformer.inference.predictor import Call, NBest, predictions_of, with_unseen
from tf_transformer.inference.saved_translator import SavedTranslator, Translation
from tf_transformer.inference.text_graph import STRINGS, Traced
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.losses.guided_alignment import of_head
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.capitals import form_of, sentence
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings
from tf_transformer.text.kept_spans import pattern_of, without_spans
from tf_transformer.text.normalization import clean
from tf_transformer.text.punctuation import opus_punctuation
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.splitting import SentenceSplitter
from tf_transformer.text.target_tag import split_tag

__all__ = ["Alignment", "SavedTranslator", "Translation", "Translator"]


class Translator(TextPredictor):
    """Translates lists of strings. The first arguments are those of `Predictor`.

    Args:
        copy_without_letters: whether a text without letters is its own translation, with score 0.
        lower_capitals: whether the model sees text in capitals or in title case as a usual
            sentence; its translation is put in the same case. One word of two or three capitals,
            such as EU, is its own translation, with score 0.

    Example:
        >>> translator = Translator.from_run("runs/demo")
        >>> translator(["twenty-one"])[0].text
        'einundzwanzig'
    """

    output = "translation"
    translates = True

    def __init__(
        self,
        model: Transformer | RecurrentModel,
        codec: Codec,
        config: DecodeConfig,
        copy_without_letters: bool = False,
        lower_capitals: bool = False,
    ):
        self.copies = copy_without_letters
        self.own_options = {
            "copy_without_letters": copy_without_letters,
            "lower_capitals": lower_capitals,
        }
        if lower_capitals:
            self.graph_type = CapitalsGraph
        super().__init__(model, codec, config)
        ids, head = tf.TensorSpec((None, None), tf.int32), config.alignment_head
        self._attention = tf.function(
            lambda source, target: tf.stack(
                [of_head(w, head) for w in model.run((source, target)).cross_attention], 1
            ),
            input_signature=[ids, ids],
            autograph=False,
        )
        self._unseen = Traced(self._graph.unseen_words, STRINGS)
        given = [STRINGS] * len(self.optional_inputs)
        self._divide_text = Traced(self._graph.divide, STRINGS)
        self._divide_given = Traced(self._graph.divide, STRINGS, *given)

    def _n_best(self, call: Call) -> NBest:
        if self.config.split == "none":
            return self._with_unseen(call.texts, super()._n_best(call))
        self._require_choices(call.given)
        columns = [call.texts, *call.given.values()]
        divide = self._divide_given if call.given else self._divide_text
        parts, of_parts = divide(*map(as_strings, columns))
        texts, *given = (as_texts(column.numpy()) for column in of_parts)
        inner = Call(
            texts,
            lambda inputs, tokens: call.progress(0, tokens),
            dict(zip(call.given, given, strict=True)),
        )
        rows = self._with_unseen(texts, super()._n_best(inner))
        call.progress(int(tf.math.count_nonzero(parts.counts)), 0)
        return self._joined(parts, rows)

    def _with_unseen(self, texts: Sequence[str], rows: NBest) -> NBest:
        unseen = self._unseen(as_strings(texts)).numpy() if self.codec.seen_words else ()
        return with_unseen(rows, unseen)

    def _joined(self, parts: Parts, rows: NBest) -> NBest:
        """The predictions for texts, from a row of predictions for each part."""
        places = (len(rows), self.config.num_hypotheses)
        texts, scores = np.full(places, b"", object), np.full(places, NEG_INF, np.float32)
        words = [np.full(places, b"", object)] * self.config.word_probabilities
        notices: list[set[Notice]] = [set() for _ in parts.counts]
        unseen: list[list[str]] = [[] for _ in parts.counts]
        for number, (row, text) in enumerate(zip(rows, parts.text_of.numpy(), strict=True)):
            for place, prediction in enumerate(row):
                texts[number, place] = prediction.text.encode()
                scores[number, place] = prediction.score
                for of_parts in words:
                    numbers = " ".join(map(str, prediction.word_probabilities))
                    of_parts[number, place] = numbers.encode()
            notices[text] |= set(row[0].notices)
            unseen[text] += row[0].unseen_words
        strings = [tf.constant(column, tf.string) for column in (texts, *words)]
        joined = self._graph.rejoin(parts, strings[0], tf.constant(scores), *strings[1:])
        texts, scores, *words = (field.numpy() for field in joined)
        columns = [texts, scores, parts.counts.numpy().tolist(), notices, unseen, *words]
        return [
            [
                prediction._replace(
                    notices=in_order(of_text),
                    unseen_words=tuple(of_unseen),
                )
                for prediction in predictions_of(row, of_row, False, False, False, count, *of_words)
            ]
            for row, of_row, count, of_text, of_unseen, *of_words in zip(*columns, strict=True)
        ]

    @staticmethod
    def load(path: str | os.PathLike) -> SavedTranslator:
        """Loads an exported translator, a SavedModel from `save` or `python -m export`.

        Args:
            path: the folder of one version, like served/x/1.
        """
        return SavedTranslator(path)

    @own_settings()
    def align(
        self, texts: Sequence[str], translations: Sequence[str], layer: int | None = None
    ) -> list[Alignment]:
        """The decoder's attention to each text for each token of its translation.

        The result is the cross-attention of a layer of the decoder, by default of
        `config.alignment_layer`. It is that of the head `config.alignment_head`, or averaged over
        the heads. With `config.split`, each sentence attends to its own source.

        Raises:
            InputError: for a layer that the decoder does not have.
        """
        texts = as_texts(texts)
        translations = as_texts(translations, "translations", texts)
        sentences = [self._sentences(*pair) for pair in zip(texts, translations, strict=True)]
        pairs = list(itertools.chain.from_iterable(sentences))
        sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
        layer = self.config.alignment_layer if layer is None else layer
        aligned = iter(self._aligned(sources, targets, layer))
        return [Alignment.of_parts([next(aligned) for _ in of_pair]) for of_pair in sentences]

    def _sentences(self, text: str, translation: str) -> list[tuple[str, str]]:
        """The sentences of a pair; the pair itself, where its sides have unlike sentences."""
        if self.config.split == "none" or split_tag(text, self.codec["source"].tags)[0]:
            return [(text, translation)]
        kept = pattern_of(self.config.keep) if self.config.keep else ""
        sides = []
        for side, language in ((text, self.config.split_language), (translation, "")):
            pieces = SentenceSplitter(language, kept).split(clean(side))
            if "" in pieces[1::2]:  # sentences without a space between them share a word
                return [(text, translation)]
            sides.append(list(filter(None, pieces[::2])))
        if not sides[0] or len(sides[0]) != len(sides[1]):
            return [(text, translation)]
        return list(zip(*sides, strict=True))

    def _aligned(self, texts: list[str], translations: list[str], layer: int) -> list[Alignment]:
        """`align` of texts that are not divided."""
        nothing = Alignment(Tokens([], [], []), Tokens([], [], []), np.zeros((0, 0), np.float32))
        result = [nothing] * len(texts)
        for indices, source, target in self.pairs(Call(texts, predictions=translations)):
            of_layers = np.asarray(self._attention(source, shift_right(target)))
            if layer not in range(-of_layers.shape[1], of_layers.shape[1]):
                raise InputError(
                    f"expected a layer of the decoder from 0 to {of_layers.shape[1] - 1}, or -1 "
                    f"for the last, got {layer!r:.80}."
                )
            weights = of_layers[:, layer]
            for i, *ids, matrix in zip(indices, source, target, weights, strict=True):
                both = (texts[i], translations[i])
                tag, rest = split_tag(texts[i], self.codec["source"].tags)
                alone = without_spans(rest, self.config.keep) if self.config.keep else rest
                if self.own_options["lower_capitals"] and form_of(alone):  # as the graph does
                    both = (f"{tag} {sentence(rest)}", sentence(translations[i]))
                sides = ("source", "target")
                text, translation = map(self._tokens_in_words, both, ids, sides)
                matrix = matrix[: len(translation.pieces), : len(text.pieces)]
                result[i] = Alignment(text, translation, matrix)
        return result

    def _tokens_in_words(self, text: str, ids: np.ndarray, field: str) -> Tokens:
        """The pieces of a text with the words of `str.split()`; the ids may be cut."""
        if field == "source" and self.config.punctuation == "opus":
            text = opus_punctuation(text)  # as the graph does
        pieces = self.tokens(ids, field).pieces
        words = [*clean(text).split(), pieces[-1]]
        word_of = self.codec[field].word_of_pieces(text)
        if field == "source" and self.config.default_tag:
            has_tag = split_tag(text, self.codec["source"].tags)[0]
            word_of = word_of if has_tag else [0, *word_of]  # the search adds the tag
        word_of = word_of[: len(pieces) - 1]
        return Tokens(pieces, words, [*word_of, len(words) - 1])
