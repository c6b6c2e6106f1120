"""Checkpoints of a run: written whole, and resumed from."""

import pathlib
import shutil
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.files.reading import literal
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import (
    broken_as_input_error,
    checkpoints_in,
    require_finite,
    tensors,
    update_of,
)
from tf_transformer.training.early_stopping import EarlyStopping
from tf_transformer.training.update import Updater


class Checkpoints:
    """Writes checkpoints of a training.

    `checkpoints/resume` holds one checkpoint with everything the next update depends on: weights,
    optimizer (its counts say which batch is next), averages, random states, and the
    best score. `checkpoints/` holds the weights of the newest validation intervals, and
    `checkpoints/best` those with the best score.

    A checkpoint becomes the latest by one rename, after its data is on disk; the previous one is
    deleted after that. Weights are written first: if a run dies between the two, it trains the
    interval again from the previous checkpoint, to the same weights.

    Args:
        folder: the run's folder.
        updater: the training.
        early_stopping: its best score.
        keep: number of validation intervals whose weights are kept.
    """

    def __init__(
        self,
        folder: RunFolder,
        updater: Updater,
        early_stopping: EarlyStopping,
        keep: int,
    ):
        self._updater = updater
        model, optimizer = updater.model, updater.optimizer
        random_state = [*_without(model.weights, model.variables), *updater.loss.variables]
        weights = tf.train.Checkpoint(weights=tensors(model.weights))
        self._parts = {
            "weights": tensors(model.weights),
            "random_state": tensors(random_state),
            "optimizer": tensors(_without(optimizer.averages, optimizer.variables)),
            "averages": tensors(optimizer.averages),
            "standing": {  # this and `rounds_since` are names of earlier versions
                "best": early_stopping.best,
                "best_update": early_stopping.best_update,
                "rounds_since": early_stopping.scores_since,
            },
            "choice": {  # of the best weights; not in the checkpoints of earlier versions
                "best_loss": early_stopping.best_loss,
                "metric": early_stopping.metric_name,
            },
        }
        self._starting = folder.starting
        for place in (folder.checkpoints, folder.best, folder.resume):
            checkpoints_in(place)  # a manager would take a broken list for none
        self._intervals = _manager(weights, folder.checkpoints, keep)
        self._best = _manager(weights, folder.best, 1)
        self._resume = _manager(tf.train.Checkpoint(**self._parts), folder.resume, 1)

    def resume(self) -> None:
        """Restores the latest checkpoint, if there is one; also one of an earlier version.

        Raises:
            InputError: when it is broken, or has weights that are not finite.
        """
        for manager in (self._intervals, self._best, self._resume):
            _remove_unfinished(manager)
        if latest := self._resume.latest_checkpoint:
            with broken_as_input_error(latest):
                self._restore(latest)
            for weight in self._updater.model.weights:
                require_finite(np.asarray(weight), latest)

    def _restore(self, latest: str) -> None:
        everything = self._resume.checkpoint
        stored = {name.split("/")[0] for name, _ in tf.train.list_variables(latest)}
        if "choice" not in stored:
            everything = tf.train.Checkpoint(
                **{name: part for name, part in self._parts.items() if name != "choice"}
            )
        everything.restore(latest).assert_consumed()

    @property
    def latest(self) -> int:
        """The updates in the latest checkpoint to resume from; 0 without one."""
        path = tf.train.latest_checkpoint(self._resume.directory)
        return update_of(path) if path else 0

    def save(self) -> None:
        """Saves everything that the training needs to resume from here."""
        self._save(self._resume)
        self._starting.unlink(missing_ok=True)

    def save_interval(self, is_best: bool) -> None:
        """Saves the weights at the end of a validation interval, then the rest."""
        self._save(self._intervals)
        if is_best:
            self._save(self._best)
        self.save()

    def _save(self, manager: tf.train.CheckpointManager) -> None:
        try:
            manager.save(checkpoint_number=self._updater.next_batch)
        except (OSError, tf.errors.OpError) as error:
            _remove_unfinished(manager)
            reason = str(error).rpartition("}} ")[2]  # after TensorFlow's name of the operation
            raise InputError(
                f"the checkpoint cannot be written to {manager.directory}: {reason}. The "
                "previous one is whole; make room, or make the folder writable, and give the same "
                "command again."
            ) from error


def _manager(
    checkpoint: tf.train.Checkpoint, folder: pathlib.Path, keep: int
) -> tf.train.CheckpointManager:
    folder.mkdir(parents=True, exist_ok=True)
    return tf.train.CheckpointManager(
        checkpoint, literal(folder), max_to_keep=keep, checkpoint_name="step"
    )


def _remove_unfinished(manager: tf.train.CheckpointManager) -> None:
    """Removes the temporary files of saves that were cut short."""
    for folder in pathlib.Path(manager.directory).glob("step-*_temp"):
        shutil.rmtree(folder, ignore_errors=True)


def _without(
    some: Sequence[keras.Variable], variables: Sequence[keras.Variable]
) -> list[keras.Variable]:
    left_out = {id(variable) for variable in some}
    return [variable for variable in variables if id(variable) not in left_out]
