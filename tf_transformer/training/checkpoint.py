"""Checkpoints of a run: saved whole, resumed from, averaged when loaded (paper section 6.1)."""

import os
import pathlib

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError

FOLDER = "checkpoints"


class Checkpoints:
    """The newest `keep` checkpoints of a training: weights, dropout's random state, optimizer.

    A checkpoint becomes the latest by one rename, after its data is on disk.

    Args:
        run_dir: the run's folder.
        model: the built Transformer.
        optimizer: the built optimizer.
        keep: how many are kept.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        keep: int,
    ):
        self._optimizer = optimizer
        weights = {id(weight) for weight in model.weights}
        random_state = [v for v in model.variables if id(v) not in weights]
        self._manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(
                weights=_tensors(model.weights),
                random_state=_tensors(random_state),
                optimizer=_tensors(optimizer.variables),
            ),
            str(pathlib.Path(run_dir) / FOLDER),
            max_to_keep=keep,
            checkpoint_name="step",
        )

    def resume(self) -> int:
        """Restores the latest checkpoint, if there is one; returns the updates it holds."""
        if self._manager.latest_checkpoint:
            self._manager.checkpoint.restore(self._manager.latest_checkpoint).assert_consumed()
        return self._updates()

    def save(self) -> None:
        """Saves model and optimizer as the latest checkpoint."""
        self._manager.save(checkpoint_number=self._updates())

    def _updates(self) -> int:
        return int(self._optimizer.iterations.numpy())  # int() alone fails on two replicas


def _tensors(variables: list[keras.Variable]) -> list[tf.Variable]:
    """TensorFlow's variables, listed in full.

    Given a Keras model itself, `tf.train.Checkpoint` passes over layers that sit in lists.
    """
    return [variable.value for variable in variables]


def has_checkpoint(run_dir: str | os.PathLike) -> bool:
    """Whether a run's folder holds a checkpoint."""
    return tf.train.latest_checkpoint(str(pathlib.Path(run_dir) / FOLDER)) is not None


def load_average(run_dir: str | os.PathLike, model: keras.Model, count: int) -> int:
    """Gives a built model the mean of the weights of a run's newest checkpoints.

    Args:
        run_dir: the run's folder.
        model: the built Transformer.
        count: how many checkpoints to average; fewer when the run holds fewer.

    Returns:
        how many were averaged.

    Raises:
        InputError: when the run holds no checkpoint.
    """
    folder = pathlib.Path(run_dir) / FOLDER
    state = tf.train.get_checkpoint_state(str(folder))
    if state is None:
        raise InputError(f"{folder} holds no checkpoint; train first: train.py --run_dir {run_dir}")
    paths = state.all_model_checkpoint_paths[-count:]
    checkpoint = tf.train.Checkpoint(weights=_tensors(model.weights))
    mean = [np.zeros(weight.shape, np.float64) for weight in model.weights]
    for path in paths:
        checkpoint.restore(path).expect_partial().assert_existing_objects_matched()
        for total, weight in zip(mean, model.weights, strict=True):
            total += np.asarray(weight) / len(paths)
    for weight, value in zip(model.weights, mean, strict=True):
        weight.assign(value.astype(np.float32))
    return len(paths)
