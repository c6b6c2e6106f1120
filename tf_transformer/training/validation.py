"""Losses, scores and samples of the validation examples.

The samples are for TensorBoard: predictions, and a picture of attention.
"""

import functools
import importlib.util
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.data.examples import spread
from tf_transformer.inference.attention_record import Tokens
from tf_transformer.inference.predictor import Predictor
from tf_transformer.tasks.metrics import OF_VALIDATION, Metric
from tf_transformer.tasks.task import Task, TestSet
from tf_transformer.training.preparation import TrainingData
from tf_transformer.training.strategy import broadcast, is_chief, replica_batches
from tf_transformer.training.update import Updater
from tf_transformer.visualization.attention_picture import last_layer_picture

ROWS = 4  # in the table
LONGEST_CELL = 500  # characters
PICTURE_LENGTH, LONGEST_PICTURE = 80, 200  # characters of input and output together


class Samples(NamedTuple):
    """Samples of one validation."""

    table: str = ""  # Markdown
    picture: bytes = b""  # PNG


@dataclass(frozen=True)
class Validation:
    """Measures a model in training."""

    task: Task
    updater: Updater
    data: TrainingData
    decode: DecodeConfig
    strategy: tf.distribute.Strategy
    metric: Metric  # chooses the best weights; all workers need its score

    @functools.cached_property
    def _predict(self) -> Predictor:
        """The predictor; uses the model's present weights at each call."""
        return self.task.predictor(self.updater.model, self.data.codec, self.decode)

    def losses(self) -> dict[str, float]:
        """Loss, perplexity and accuracy on all validation examples, by names in the log.

        With several corpora, the loss of each, too.
        """
        of_corpora = {}
        before = self.updater.loss_so_far
        for corpus, sampler in self.data.valid.items():
            with replica_batches(self.strategy, sampler.names, sampler.one_epoch) as batches:
                for _ in range(len(sampler)):
                    self.updater.validate(batches)
            total, tokens = after = self.updater.loss_so_far
            of_corpora[f"loss/{corpus}"] = (total - before[0]) / max(1.0, tokens - before[1])
            before = after
        metrics = self.updater.read_metrics()
        return _named(metrics | of_corpora if len(of_corpora) > 1 else metrics)

    def scores(self) -> tuple[dict[str, float], Samples]:
        """The scores of the predictions, by names in the log, and samples.

        Only the chief predicts; other workers get the metric, and no samples. A score of the sample
        takes the name of none of `losses`.
        """
        by_name: dict[str, float | str] = {}
        samples = Samples()
        if is_chief(self.strategy):
            predictions, by_name = self.task.evaluate(self._predict, self.data.scored)
            samples = samples_of(self.task, self._predict, self.data.scored, predictions)
            by_name |= self._scores_by_corpus(predictions)
        of_losses = {metric.name for metric in OF_VALIDATION}
        scores = {
            name: score
            for name, score in by_name.items()
            if isinstance(score, float) and name not in of_losses
        }
        if self.metric not in OF_VALIDATION:
            name = self.metric.name
            own = scores[name] if is_chief(self.strategy) else 0.0
            (scores[name],) = broadcast(self.strategy, [own])
        return _named(scores), samples

    def _scores_by_corpus(self, predictions: Sequence[str]) -> dict[str, float]:
        """The scores of each corpus, if there are several, by names such as bleu/a.en-de."""
        scores: dict[str, float] = {}
        names, (inputs, references) = self.data.scored_corpora, self.data.scored
        rows = list(zip(names, inputs, predictions, references, strict=True))
        corpora = dict.fromkeys(names)
        for corpus in corpora if len(corpora) > 1 and self.task.metrics else ():
            _, *columns = zip(*(row for row in rows if row[0] == corpus), strict=True)
            own_inputs, own_predictions, own_references = map(list, columns)
            own_scores = self.task.score(own_inputs, own_predictions, [own_references])
            for name, score in own_scores.items():
                if isinstance(score, float):
                    scores[f"{name}/{corpus}"] = score
        return scores


def _named(metrics: Mapping[str, float]) -> dict[str, float]:
    return {f"val_{name}": value for name, value in metrics.items()}


def samples_of(
    task: Task, predictor: Predictor, test: TestSet, predictions: Sequence[str]
) -> Samples:
    """Some of the scored examples with their predictions, and the attention of one example."""
    return Samples(table(test, predictions), picture(predictor, task.attended(test)))


def table(test: TestSet, predictions: Sequence[str]) -> str:
    """A Markdown table of some examples."""
    rows = list(zip(test.inputs, predictions, test.references, strict=True))
    lines = [" | ".join(map(_cell, row)) for row in spread(rows, ROWS)]
    lines = ["input | prediction | reference", "--- | --- | ---", *lines]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(text: str) -> str:
    """The text as one line, with punctuation escaped for Markdown and HTML."""
    text = " ".join(text.split())
    text = text[:LONGEST_CELL] + "…" * (len(text) > LONGEST_CELL)
    return re.sub(r"[!-/:-@[-`{-~]", lambda match: f"&#{ord(match[0])};", text)


def picture(predictor: Predictor, test: TestSet) -> bytes:
    """A picture of the attention of the last layer between pieces.

    A model with a source shows its attention to the source. The example is the same at each
    validation: its length is nearest to `PICTURE_LENGTH`. The model reads the example's reference,
    so that the pictures of two validations differ only by the weights.

    The PNG file is empty without matplotlib, without attention weights, or if all examples are too
    long.
    """
    attention = getattr(predictor, "attention", None)
    if attention is None or importlib.util.find_spec("matplotlib") is None:
        return b""
    text, output = min(
        zip(*test, strict=True), key=lambda pair: abs(len("".join(pair)) - PICTURE_LENGTH)
    )
    if len(text + output) > LONGEST_PICTURE:
        return b""
    try:
        (record,) = attention([text], [output])
    except AttributeError:  # a search needs no model that returns its attention
        return b""
    if not record.maps:
        return b""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about characters that the font does not have
        last = record.maps[-1]
        last = last._replace(queries=_each_alone(last.queries), keys=_each_alone(last.keys))
        return last_layer_picture(record._replace(maps=[last]), ".png")


def _each_alone(tokens: Tokens) -> Tokens:
    """The pieces, each as a word, because some languages have few or no spaces."""
    return Tokens(tokens.pieces, tokens.pieces, list(range(len(tokens.pieces))))
