"""The best validation score, and when to stop without a better one."""

import math
from collections.abc import Sequence

import tensorflow as tf

from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.tasks.metrics import LOSS, OF_VALIDATION
from tf_transformer.tasks.task import Task


def requested_metrics(train: TrainConfig, task: Task) -> list[str]:
    """The names of metrics that are computed for `train.metric` alone.

    Raises:
        InputError: when `train.metric` does not exist, or is not computed.
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
    train: TrainConfig, task: Task, references: Sequence[str], goes_on: bool = False
) -> str:
    """The score that chooses the best weights.

    Args:
        train: its `metric` is the choice, unless it is empty.
        task: chooses by the references.
        references: of the validation examples that are scored.
        goes_on: whether the run has a checkpoint. It names the metric, unless an earlier version
            wrote it, which had one for each task: the first.
    """
    if train.metric or not train.valid_score_examples:
        return train.metric or LOSS.name
    return (*task.metrics, LOSS)[0].name if goes_on else task.default_metric(references)


class EarlyStopping(tf.Module):
    """The best of all validation scores; its variables are part of checkpoints.

    Args:
        metric: the name of the score.

    Attributes:
        best: the gain of the best score, see `tasks.metrics.gain`; higher is better.
        best_loss: the validation loss of the update with the best score.
        best_update: the number of updates when it was reached.
        scores_since: scores since then.
        metric_name: the metric; a checkpoint replaces it, so that a run keeps its metric.
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

    def update(self, score: float, loss: float, updates: int) -> bool:
        """Records a score.

        Args:
            score: the gain of a score; higher is better, NaN never is.
            loss: the validation loss; of equal scores, that with the lower loss is better.
            updates: number of updates made.

        Returns:
            whether it is better than all before.
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
        """Whether the last `patience` scores brought no improvement; never when it is 0."""
        return 0 < patience <= int(self.scores_since.numpy())
