"""How a training stands: its best score so far, and for how long there was no better one."""

import math

import tensorflow as tf


class Standing(tf.Module):
    """The best score of all rounds, kept in checkpoints so that it survives an interruption.

    Attributes:
        best: the best score so far; higher is better.
        best_update: the update it was reached at.
        rounds_since: rounds since then.
    """

    def __init__(self):
        super().__init__()
        self.best = tf.Variable(-math.inf, dtype=tf.float64, trainable=False)
        self.best_update = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.rounds_since = tf.Variable(0, dtype=tf.int64, trainable=False)

    def note(self, score: float, update: int) -> bool:
        """Takes note of a round's score.

        Args:
            score: higher is better; NaN never is.
            update: how many updates were made.

        Returns:
            whether it is better than all before.
        """
        if score > self.best.numpy():
            self.best.assign(score)
            self.best_update.assign(update)
            self.rounds_since.assign(0)
            return True
        self.rounds_since.assign_add(1)
        return False

    def has_waited(self, patience: int) -> bool:
        """Whether that many rounds in a row were no better; never when `patience` is 0."""
        return 0 < patience <= int(self.rounds_since.numpy())
