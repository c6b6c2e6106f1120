"""The best validation score, and the end of a training run without improvement."""

import math
from collections.abc import Sequence

import tensorflow as tf

from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.tasks.metrics import LOSS, OF_VALIDATION
from tf_transformer.tasks.task import Task


def requested_metrics(train: TrainConfig, task: Task) -> list[str]:
    """The names of metrics that are computed only because `train.metric` names them."""
    if not train.metric:
        return []
    try:
        metric = task.metric(train.metric)
    except InputError as error:
        raise InputError(f"train.metric: {error}") from error
    if metric in OF_VALIDATION:
        return []
    if not train.valid_score_examples:
        names = " or ".join(metric.name for metric in OF_VALIDATION)
        raise InputError(
            f"train.metric={train.metric} needs train.valid_score_examples above 0; without scores "
            f"only {names} can choose the best weights."
        )
    return [] if metric in task.metrics else [train.metric]


def choose_metric(
    train: TrainConfig, task: Task, references: Sequence[str], resumes: bool = False
) -> str:
    """The name of the score that chooses the best weights.

    It is `train.metric` if it is given. Otherwise, the task chooses by the references of the
    validation examples. A checkpoint stores the name. One of an earlier version does not, so a run
    that resumes gets the task's first metric.
    """
    if train.metric or not train.valid_score_examples:
        return train.metric or LOSS.name
    return (*task.metrics, LOSS)[0].name if resumes else task.default_metric(references)


class EarlyStopping(tf.Module):
    """The best validation score so far. Its variables are part of checkpoints.

    A restored checkpoint sets the name of the metric, so that a run keeps its metric.
    """

    def __init__(self, metric: str = LOSS.name):
        super().__init__()
        # The gain of the best score (`tasks.metrics.gain`), which is higher for a better score.
        self.best = tf.Variable(-math.inf, dtype=tf.float64, trainable=False)
        self.best_loss = tf.Variable(math.inf, dtype=tf.float64, trainable=False)
        self.best_update = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.scores_since = tf.Variable(0, dtype=tf.int64, trainable=False)  # since the best one
        self.metric_name = tf.Variable(metric, dtype=tf.string, trainable=False)

    @property
    def metric(self) -> str:
        """The name of the score that chooses the best weights."""
        return self.metric_name.numpy().decode()

    @property
    def best_at(self) -> int | None:
        """Number of updates at the best score, 0 for an origin's weights; None without a score."""
        has_best = (self.best.numpy(), -self.best_loss.numpy()) > (-math.inf, -math.inf)
        return int(self.best_update.numpy()) if has_best else None

    def update(self, score: float, loss: float, updates: int) -> bool:
        """Records the gain of a score; whether it is better than all earlier ones.

        NaN is never better. Of equal scores, the one with the lower validation loss is better.
        """
        loss = math.inf if math.isnan(loss) else loss
        if (score, -loss) > (self.best.numpy(), -self.best_loss.numpy()):
            self.best.assign(score)
            self.best_loss.assign(loss)
            self.best_update.assign(updates)
            self.scores_since.assign(0)
            return True
        self.scores_since.assign_add(1)
        return False

    def should_stop(self, patience: int) -> bool:
        """Whether the last `patience` scores brought no improvement; always false for 0."""
        return 0 < patience <= int(self.scores_since.numpy())
