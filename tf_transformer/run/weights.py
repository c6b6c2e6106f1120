"""Reads weights from the checkpoints of a run, and averages them (paper section 6.1)."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.files.reading import literal
from tf_transformer.run.folder import RunFolder

Average = int | Literal["best", "ema"]


def load_weights(folder: RunFolder, model: keras.Model, average: Average) -> int:
    """Gives a built model weights from the checkpoints of a run.

    Args:
        folder: the run's folder.
        model: the built model.
        average: number of the newest checkpoints to average. If the run has fewer, all are
            averaged, and a line on stderr says so. best: the checkpoint with the best score. ema:
            the moving average of all updates.

    Returns:
        the number of checkpoints that were read.

    Raises:
        InputError: when the run does not have these weights; when a checkpoint is broken, has
            weights that are not finite, or belongs to another model.
    """
    paths = _paths(folder, average)
    if average == "ema":
        return _load_moving_average(folder, paths[0], model)
    if isinstance(average, int) and len(paths) < average:
        print(
            f"average {average}: averages {len(paths)} checkpoint(s), because {folder.path} has "
            "no more",
            file=sys.stderr,
        )
    _assign_means(model.weights, paths, "weights")
    return len(paths)


def save_weights(
    folder: RunFolder, variables: Sequence[keras.Variable], dtype: str, update: int
) -> None:
    """Writes the only checkpoint of a run's folder.

    Args:
        folder: the run's folder.
        variables: all weights of the model.
        dtype: dtype of the stored weights.
        update: the number of updates, for the name of the checkpoint.
    """
    stored = [tf.Variable(tf.cast(value, dtype)) for value in tensors(variables)]
    folder.checkpoints.mkdir(parents=True, exist_ok=True)
    checkpoint = tf.train.Checkpoint(weights=stored)
    manager = tf.train.CheckpointManager(checkpoint, literal(folder.checkpoints), 1)
    manager.save(checkpoint_number=update)


def updates_of(folder: RunFolder, average: Average) -> list[int]:
    """The numbers of updates of the checkpoints that `load_weights` reads, in rising order.

    Args:
        folder: the run's folder.
        average: as in `load_weights`.

    Raises:
        InputError: when the run does not have these weights.
    """
    return [update_of(path) for path in _paths(folder, average)]


def update_of(checkpoint: str) -> int:
    """The number of updates in the name of a checkpoint."""
    return int(checkpoint.rpartition("-")[2])


def tensors(variables: Sequence[keras.Variable]) -> list[tf.Variable]:
    """The TensorFlow variables of Keras variables, in one list.

    `tf.train.Checkpoint` of a Keras model omits layers in lists.
    """
    return [variable.value for variable in variables]


def checkpoints_in(folder: str | os.PathLike) -> list[str]:
    """The paths of checkpoints in TensorFlow's list in a folder, oldest first; [] without a list.

    Raises:
        InputError: when the list is broken.
    """
    path = pathlib.Path(folder, "checkpoint")
    if not path.exists():
        return []
    with broken_as_input_error(path):
        if state := tf.train.get_checkpoint_state(literal(folder)):
            return list(state.all_model_checkpoint_paths)
        raise ValueError("it is not a list of checkpoints")


@contextlib.contextmanager
def broken_as_input_error(path: str | os.PathLike) -> Iterator[None]:
    """Turns the errors of reading a checkpoint, which have many types, into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except (
        *(tf.errors.OpError, OSError, LookupError, ValueError, RuntimeError),
        AssertionError,  # from TensorFlow, for weights that the checkpoint does not have
    ) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"the checkpoint {path} is broken or of another model: {reason:.300}. Copy the whole "
            "checkpoint again, or take other weights of the run: --average 1, best or ema. A new "
            "training can start with these weights: --train.init_from."
        ) from error


def require_finite(values: np.ndarray, path: str | os.PathLike) -> None:
    """Raises an `InputError` for weights with NaN or infinity; it names their checkpoint."""
    if not np.isfinite(values).all():
        raise InputError(
            f"the checkpoint {path} has weights that are not finite (NaN or infinity), so its "
            "predictions would mean nothing. Take other weights of the run (--average 1, best or "
            "ema), or train again."
        )


def _paths(folder: RunFolder, average: Average) -> list[str]:
    """The paths of the checkpoints that `average` selects, oldest first."""
    place = folder.weights(average)
    paths = checkpoints_in(place)
    if not paths:
        raise InputError(
            f"{place} holds no checkpoint. Train first: python train.py --run_dir {folder.path}"
        )
    return paths[-(average if isinstance(average, int) else 1) :]


def _load_moving_average(folder: RunFolder, latest: str, model: keras.Model) -> int:
    with broken_as_input_error(latest):
        names = dict(tf.train.list_variables(latest))
    if not any(name.startswith("averages/") for name in names):
        raise InputError(
            f"{folder.path} holds no moving average of weights. Train with --train.average_decay "
            "0.999, or give another --average: a number of checkpoints, or best."
        )
    _assign_means(model.trainable_weights, [latest], "averages")
    return 1


def _assign_means(variables: Sequence[keras.Variable], paths: Sequence[str], name: str) -> None:
    """Gives variables their means over checkpoints, which store them as a list `name`."""
    readers = {path: _reader(path, variables, name) for path in paths}
    for i, variable in enumerate(variables):
        mean = np.zeros(variable.shape, np.float64)
        for path, reader in readers.items():
            with broken_as_input_error(path):
                value = reader.get_tensor(_key(name, i)).astype(np.float64)
            require_finite(value, path)
            mean += value / len(paths)
        variable.assign(mean.astype(np.float32))


def _reader(path: str, variables: Sequence[keras.Variable], name: str) -> Any:
    """Opens a checkpoint, and checks that it has the shapes of the variables."""
    with broken_as_input_error(path):
        reader = tf.train.load_checkpoint(path)
        stored = reader.get_variable_to_shape_map()
        shapes = {key: shape for key, shape in stored.items() if key.startswith(f"{name}/")}
        expected = {_key(name, i): list(x.shape) for i, x in enumerate(variables)}
        if shapes != expected:
            raise ValueError(
                f"it has {len(shapes)} weights, but the model of the configuration has "
                f"{len(expected)}"
                if len(shapes) != len(expected)
                else "the shapes of its weights differ from the model of the configuration"
            )
    return reader


def _key(name: str, i: int) -> str:
    """The key of item `i` of a list in a checkpoint."""
    return f"{name}/{i}/.ATTRIBUTES/VARIABLE_VALUE"
