"""The best validation score, and when to stop without a better one."""

import math

import tensorflow as tf


class EarlyStopping(tf.Module):
    """The best of all validation scores; its variables are part of checkpoints.

    Attributes:
        best: the best score; higher is better.
        best_update: the number of updates when it was reached.
        scores_since: scores since then.
    """

    def __init__(self):
        super().__init__()
        self.best = tf.Variable(-math.inf, dtype=tf.float64, trainable=False)
        self.best_update = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.scores_since = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self, score: float, updates: int) -> bool:
        """Records a score.

        Args:
            score: higher is better; NaN never is.
            updates: number of updates made.

        Returns:
            whether it is better than all before.
        """
        if score > self.best.numpy():
            self.best.assign(score)
            self.best_update.assign(updates)
            self.scores_since.assign(0)
            return True
        self.scores_since.assign_add(1)
        return False

    def should_stop(self, patience: int) -> bool:
        """Whether the last `patience` scores brought no improvement; never when it is 0."""
        return 0 < patience <= int(self.scores_since.numpy())
