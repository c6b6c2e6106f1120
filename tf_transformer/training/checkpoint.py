"""Checkpoints of a run: written whole, resumed from, averaged when loaded (paper section 6.1)."""

import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.training.learner import Learner
from tf_transformer.training.standing import Standing

FOLDER = "checkpoints"
RESUME, BEST = "resume", "best"  # folders in it

Average = int | Literal["best", "ema"]


class Checkpoints:
    """What a training leaves on disk, so that it can go on and its weights can be used.

    `checkpoints/resume` holds one checkpoint with all that the next update depends on: weights,
    optimizer (its counts are the place in the data), averages, dropout's random state, and the
    standing of the scores. `checkpoints/` holds the weights of the newest rounds, and
    `checkpoints/best` those of the round with the best score.

    A checkpoint becomes the latest by one rename, after its data is on disk; the one before is
    deleted after that. Weights go first: if a run dies between the two, the round is trained
    again from the checkpoint before, to the same weights.

    Args:
        run_dir: the run's folder.
        learner: what is trained.
        standing: of its scores.
        keep: how many rounds' weights are kept.
    """

    def __init__(self, run_dir: str | os.PathLike, learner: Learner, standing: Standing, keep: int):
        self._learner = learner
        folder = pathlib.Path(run_dir) / FOLDER
        model, optimizer = learner.transformer, learner.optimizer
        weights = tf.train.Checkpoint(weights=_tensors(model.weights))
        whole = tf.train.Checkpoint(
            weights=_tensors(model.weights),
            random_state=_tensors(_without(model.weights, model.variables)),
            optimizer=_tensors(_without(optimizer.averages, optimizer.variables)),
            averages=_tensors(optimizer.averages),
            standing=standing,
        )
        self._rounds = _manager(weights, folder, keep)
        self._best = _manager(weights, folder / BEST, 1)
        self._resume = _manager(whole, folder / RESUME, 1)

    def resume(self) -> None:
        """Restores the latest checkpoint, if there is one."""
        for manager in (self._rounds, self._best, self._resume):
            _remove_unfinished(manager)
        if self._resume.latest_checkpoint:
            self._resume.checkpoint.restore(self._resume.latest_checkpoint).assert_consumed()

    @property
    def latest(self) -> int:
        """The updates in the checkpoint that the training would go on from; 0 without one."""
        path = tf.train.latest_checkpoint(self._resume.directory)
        return _update(path) if path else 0

    def save(self) -> None:
        """Saves all that the training needs to go on from here."""
        self._save(self._resume)

    def save_round(self, is_best: bool) -> None:
        """Saves the weights that a round ended with, then the rest."""
        self._save(self._rounds)
        if is_best:
            self._save(self._best)
        self._save(self._resume)

    def _save(self, manager: tf.train.CheckpointManager) -> None:
        try:
            manager.save(checkpoint_number=self._learner.position)
        except (OSError, tf.errors.OpError) as error:
            _remove_unfinished(manager)
            reason = str(error).rpartition("}} ")[2]  # after TensorFlow's name of the operation
            raise InputError(
                f"the checkpoint cannot be written to {manager.directory}: {reason}. The one "
                "before is whole; make room, or make the folder writable, and give the same "
                "command again."
            ) from error


def _manager(checkpoint: tf.train.Checkpoint, folder: pathlib.Path, keep: int):
    return tf.train.CheckpointManager(
        checkpoint, str(folder), max_to_keep=keep, checkpoint_name="step"
    )


def _remove_unfinished(manager: tf.train.CheckpointManager) -> None:
    """Clears away what a save that did not end has left."""
    for folder in pathlib.Path(manager.directory).glob("step-*_temp"):
        shutil.rmtree(folder, ignore_errors=True)


def _tensors(variables: Sequence[keras.Variable]) -> list[tf.Variable]:
    """TensorFlow's variables, listed in full.

    Given a Keras model itself, `tf.train.Checkpoint` passes over layers that sit in lists.
    """
    return [variable.value for variable in variables]


def _without(
    some: Sequence[keras.Variable], variables: Sequence[keras.Variable]
) -> list[keras.Variable]:
    left_out = {id(variable) for variable in some}
    return [variable for variable in variables if id(variable) not in left_out]


def has_checkpoint(run_dir: str | os.PathLike) -> bool:
    """Whether a run's folder holds a checkpoint to go on from."""
    return tf.train.latest_checkpoint(str(pathlib.Path(run_dir) / FOLDER / RESUME)) is not None


def load_weights(run_dir: str | os.PathLike, model: keras.Model, average: Average) -> int:
    """Gives a built model weights that a run reached.

    Args:
        run_dir: the run's folder.
        model: the built Transformer.
        average: a number of the newest checkpoints to average, fewer when the run holds fewer;
            best: the checkpoint with the best score; ema: the moving average of all updates.

    Returns:
        how many checkpoints were read.

    Raises:
        InputError: when the run does not hold what was asked for.
    """
    paths = _paths(run_dir, average)
    if average == "ema":
        return _load_moving_average(run_dir, paths[0], model)
    checkpoint = tf.train.Checkpoint(weights=_tensors(model.weights))
    mean = [np.zeros(weight.shape, np.float64) for weight in model.weights]
    for path in paths:
        checkpoint.restore(path).expect_partial().assert_existing_objects_matched()
        for total, weight in zip(mean, model.weights, strict=True):
            total += np.asarray(weight) / len(paths)
    for weight, value in zip(model.weights, mean, strict=True):
        weight.assign(value.astype(np.float32))
    return len(paths)


def updates_of(run_dir: str | os.PathLike, average: Average) -> list[int]:
    """After which updates the weights were saved that `load_weights` reads, in rising order.

    Raises:
        InputError: as `load_weights`.
    """
    return [_update(path) for path in _paths(run_dir, average)]


def _update(path: str) -> int:
    return int(path.rpartition("-")[2])


def _paths(run_dir: str | os.PathLike, average: Average) -> list[str]:
    """The checkpoints that hold what `average` asks for, oldest first."""
    subfolder = {"best": BEST, "ema": RESUME}.get(str(average), "")
    folder = pathlib.Path(run_dir) / FOLDER / subfolder
    state = tf.train.get_checkpoint_state(str(folder))
    if state is None:
        raise InputError(
            f"{folder} holds no checkpoint; train first: python train.py --run_dir {run_dir}"
        )
    newest = average if isinstance(average, int) else 1
    return list(state.all_model_checkpoint_paths[-newest:])


def _load_moving_average(run_dir: str | os.PathLike, latest: str, model: keras.Model) -> int:
    names = dict(tf.train.list_variables(latest))
    if not any(name.startswith("averages/") for name in names):
        raise InputError(
            f"{run_dir} holds no moving average of weights. Train with --train.average_decay "
            "0.999, or give another --average: a number of checkpoints, or best."
        )
    checkpoint = tf.train.Checkpoint(averages=_tensors(model.trainable_weights))
    checkpoint.restore(latest).expect_partial().assert_existing_objects_matched()
    return 1
