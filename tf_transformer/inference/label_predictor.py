"""Labels for texts: a tokenizer and a classifier in one object."""

import functools
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from keras import ops

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference import predictor
from tf_transformer.inference.encoder_predictor import EncoderPredictor
from tf_transformer.inference.inputs import as_texts
from tf_transformer.inference.text_graph import Outputs
from tf_transformer.models.encoder_only import Classifier
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import comparable

SMALLEST = 1e-38  # probability, so that every score is finite
THRESHOLD = 0.5  # with several labels per text, a label is predicted above this probability
_comparable = functools.lru_cache(1 << 16)(comparable)  # a file has few labels in many rows


class LabelPredictor(EncoderPredictor):
    """Classifies texts, or pairs of texts with a tab between them.

    The score of a label is its log-probability. With several labels per text, the prediction joins
    all labels with a probability above 0.5. Its score is the log-probability of exactly this set of
    labels. The model is a `Classifier`. Arguments are those of `Predictor`; `num_hypotheses` of the
    configuration is the number of labels in an n-best list.

    Example:
        >>> from tf_transformer.text.tokenizer import Tokenizer
        >>> codec = Codec(Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300))
        >>> model = Classifier(codec.size("text"), ["de", "en"])
        >>> model.build()
        >>> LabelPredictor(model, codec, DecodeConfig()).probabilities(["a house"]).shape
        (1, 2)
    """

    def __init__(self, model: Classifier, codec: Codec, config: DecodeConfig):
        self.inputs = ("text", "text_pair")[: model.texts]
        super().__init__(model, codec, config)

    def columns(self, texts: list[str]) -> list[list[str]]:
        """The texts, or the first texts and the second texts of pairs."""
        if self.model.texts == 1:
            return [texts]
        for text in texts:
            if "\t" not in text:
                raise InputError(f"expected two texts with a tab between them, got {text!r}.")
        return _halves(texts)

    def outputs(self, ids: tf.Tensor) -> Outputs:
        """`label`, string (B,); `score`, float32 (B,); `probabilities`, float32 (B, C)."""
        logits = self.model.logits(ids)
        names = tf.constant(self.model.labels)
        if not self.model.separator:
            log_p = ops.log_softmax(logits, axis=-1)
            label = tf.gather(names, tf.argmax(log_p, axis=-1))
            return {
                "label": label,
                "score": tf.reduce_max(log_p, axis=-1),
                "probabilities": tf.exp(log_p),
            }
        probabilities = ops.sigmoid(logits)
        taken = probabilities > THRESHOLD
        chosen = tf.ragged.boolean_mask(tf.broadcast_to(names, tf.shape(taken)), taken)
        return {
            "label": tf.strings.reduce_join(chosen, axis=1, separator=self.model.separator),
            "score": tf.reduce_sum(ops.log_sigmoid(tf.abs(logits)), axis=-1),
            "probabilities": probabilities,
        }

    def probabilities(
        self, texts: Sequence[str], progress: predictor.Progress = predictor.no_progress
    ) -> np.ndarray:
        """The probabilities of the labels for N texts, or pairs with a tab, float32 (N, C)."""
        rows, _ = self.encode(self.columns(as_texts(texts)))
        return self.arrays(rows, progress)["probabilities"]

    def _n_best(self, call: predictor.Call) -> predictor.NBest:
        """The likeliest labels; with several labels per text, the prediction alone."""
        rows, cut = self.encode(self.columns(call.texts))
        arrays = self.arrays(rows, call.progress)
        if self.model.separator:
            pairs = zip(arrays["label"], arrays["score"], cut, strict=True)
            return [
                predictor.predictions_of([label], [score], is_cut) for label, score, is_cut in pairs
            ]
        count = self.config.num_hypotheses
        result = []
        for p, is_cut in zip(arrays["probabilities"], cut, strict=True):
            order = np.argsort(-p, kind="stable")[:count]
            labels = [self.model.labels[i] for i in order]
            result.append(predictor.predictions_of(labels, map(_log, p[order]), is_cut))
        return result

    def _scores(self, call: predictor.Call) -> list[predictor.PairScore]:
        """The log-probability of a given label, or of exactly the given set of labels."""
        names, separator = self.model.labels, self.model.separator
        rows_of_targets = [targets_of(label, names, separator) for label in call.predictions]
        targets = np.array(rows_of_targets).reshape(len(call.texts), -1)
        rows, cut = self.encode(self.columns(call.texts))
        p = self.arrays(rows, call.progress)["probabilities"]
        if self.model.separator:
            totals = [sum(map(_log, row)) for row in np.where(targets, p, 1 - p)]
        else:
            totals = [_log(row) for row in (p * targets).sum(axis=1)]
        return [
            predictor.PairScore(total, total, is_cut)
            for total, is_cut in zip(totals, cut, strict=True)
        ]

    def signatures(self, texts: Sequence[str]) -> dict[str, predictor.SignatureCase]:
        texts = as_texts(texts)
        columns = [texts] if self.model.texts == 1 else _halves(texts)
        rows, cut = self.encode(columns)
        arrays = self.arrays(rows)
        outputs = {name: array.tolist() for name, array in arrays.items()} | {"truncated": cut}
        outputs["label"] = [label.decode("utf-8") for label in arrays["label"]]
        inputs = dict(zip(self.inputs, columns, strict=True))
        return {"serving_default": predictor.SignatureCase(inputs, outputs)}


def targets_of(label: str, names: Sequence[str], separator: str) -> list[int]:
    """A vector with 1 for each name in a label of a file, and 0 for all further names.

    A label is a name, or several names joined by a separator, in any order and Unicode form. Spaces
    around a name are ignored. An unknown name is an `InputError`.
    """
    labels_given = names_in(label, separator)
    known = list(map(_comparable, names))
    if unknown := set(labels_given) - set(known):
        raise InputError(
            f"the label {min(unknown)!r} is not in the training file, which has "
            f"{', '.join(map(repr, names))}. To train for other labels, give task.labels."
        )
    return [int(name in labels_given) for name in known]


def names_in(label: str, separator: str) -> list[str]:
    """The names in a label of a file, as `comparable` texts."""
    names = label.split(separator) if separator else [label]
    return list(filter(None, map(_comparable, names)))


def _halves(texts: Sequence[str]) -> list[list[str]]:
    """The parts before and after the first tab of each text."""
    pairs = [text.partition("\t") for text in texts]
    return [[first for first, _, _ in pairs], [second for _, _, second in pairs]]


def _log(p: float) -> float:
    return math.log(max(float(p), SMALLEST))
