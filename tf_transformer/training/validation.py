"""Losses and scores on the validation examples."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.tasks.metrics import OF_VALIDATION, Metric
from tf_transformer.tasks.task import Predictor, Task
from tf_transformer.training.preparation import TrainingData
from tf_transformer.training.replica_batches import replica_batches
from tf_transformer.training.samples import Samples, samples_of
from tf_transformer.training.strategy import broadcast, is_chief
from tf_transformer.training.update import Updater


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
        """Loss, perplexity and accuracy on all validation examples, by names in the log."""
        sampler = self.data.valid
        with replica_batches(self.strategy, sampler.names, sampler.one_epoch) as batches:
            for _ in range(len(sampler)):
                self.updater.validate(batches)
        return _named(self.updater.read_metrics())

    def scores(self) -> tuple[dict[str, float], Samples]:
        """The scores of the predictions, by names in the log, and samples.

        Only the chief predicts; other workers get the metric, and no samples.
        """
        by_name: dict[str, float | str] = {}
        samples = Samples()
        if is_chief(self.strategy):
            predictions, by_name = self.task.evaluate(self._predict, self.data.scored)
            samples = samples_of(self.task, self._predict, self.data.scored, predictions)
        scores = {name: score for name, score in by_name.items() if isinstance(score, float)}
        if self.metric not in OF_VALIDATION:
            name = self.metric.name
            own = scores[name] if is_chief(self.strategy) else 0.0
            (scores[name],) = broadcast(self.strategy, [own])
        return _named(scores), samples


def _named(metrics: Mapping[str, float]) -> dict[str, float]:
    return {f"val_{name}": value for name, value in metrics.items()}
