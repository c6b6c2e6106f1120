"""The best validation score, and the end of a training run without improvement."""

import math
from collections.abc import Sequence

import tensorflow as tf

from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.tasks.metrics import LOSS, OF_VALIDATION
from tf_transformer.tasks.task import Task


def requested_metrics(train: TrainConfig, task: Task) -> list[str]:
    """The names of metrics that are computed only because `train.metric` names them.

    Args:
        train: the options of the training.
        task: the task, with its own metrics.

    Raises:
        InputError: when `train.metric` is unknown, or no scores are computed.
    """
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

    Args:
        train: the options of the training; `train.metric` is the choice if it is not empty.
        task: the task, which chooses by the references.
        references: references of the validation examples that are scored.
        resumes: whether the run has a checkpoint. A checkpoint stores the name of its metric. For
            a checkpoint of an earlier version without a name, the result is the task's first
            metric.
    """
    if train.metric or not train.valid_score_examples:
        return train.metric or LOSS.name
    return (*task.metrics, LOSS)[0].name if resumes else task.default_metric(references)


class EarlyStopping(tf.Module):
    """The best validation score so far. Its variables are part of checkpoints.

    Args:
        metric: the name of the score.

    Attributes:
        best: gain of the best score (`tasks.metrics.gain`), float64; higher is better.
        best_loss: validation loss of the update with the best score, float64.
        best_update: number of updates at the best score, int64. 0: the weights of the run in
            `train.init_from` have the best score, or there is no score yet.
        scores_since: number of scores since the best score, int64.
        metric_name: name of the score. A restored checkpoint sets it, so that a run keeps its
            metric.
    """

    def __init__(self, metric: str = LOSS.name):
        super().__init__()
        self.best = tf.Variable(-math.inf, dtype=tf.float64, trainable=False)
        self.best_loss = tf.Variable(math.inf, dtype=tf.float64, trainable=False)
        self.best_update = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.scores_since = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.metric_name = tf.Variable(metric, dtype=tf.string, trainable=False)

    @property
    def metric(self) -> str:
        """The name of the score."""
        return self.metric_name.numpy().decode()

    @property
    def has_best(self) -> bool:
        """Whether there is a best score."""
        return (self.best.numpy(), -self.best_loss.numpy()) > (-math.inf, -math.inf)

    def update(self, score: float, loss: float, updates: int) -> bool:
        """Records a score.

        Args:
            score: gain of a score; higher is better. NaN is never better.
            loss: validation loss; of equal scores, the score with the lower loss is better.
            updates: number of updates made.

        Returns:
            whether the score is better than all earlier scores.
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
