"""Reads weights from the checkpoints of a run, and averages them (paper section 6.1)."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.files.reading import literal
from tf_transformer.models.names import by_name
from tf_transformer.run.earlier_weights import earlier_order
from tf_transformer.run.folder import RunFolder

Average = int | Literal["best", "ema"]
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # ends TensorFlow's key of a variable


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
    paths = selected(folder, average)
    group = "averages" if average == "ema" else "weights"
    _assign_means(model, by_name(model), paths, group)
    return len(paths)


def selected(folder: RunFolder, average: Average) -> list[str]:
    """The paths of the checkpoints that `average` selects, oldest first.

    Raises:
        InputError: when there are none, and for ema without a moving average.
    """
    paths = _paths(folder, average)
    if average == "ema":
        _require_moving_average(folder, paths[0])
    if isinstance(average, int) and len(paths) < average:
        print(
            f"average {average}: averages {len(paths)} checkpoint(s), because {folder.path} has "
            "no more",
            file=sys.stderr,
        )
    return paths


def save_weights(
    folder: RunFolder, weights: Mapping[str, keras.Variable], dtype: str, update: int
) -> None:
    """Writes the only checkpoint of a run's folder.

    Args:
        folder: the run's folder.
        weights: all weights of the model, by name.
        dtype: dtype of the stored weights.
        update: the number of updates, for the name of the checkpoint.
    """
    stored = {name: tf.Variable(tf.cast(x.value, dtype)) for name, x in weights.items()}
    folder.checkpoints.mkdir(parents=True, exist_ok=True)
    checkpoint = tf.train.Checkpoint(weights=as_tree(stored))
    manager = tf.train.CheckpointManager(checkpoint, literal(folder.checkpoints), 1)
    manager.save(checkpoint_number=update)


def as_tree(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the parts of their names, so that a checkpoint's keys are the names.

    Example:
        >>> as_tree({"encoder/norm/beta": 1, "encoder/norm/gamma": 2})
        {'encoder': {'norm': {'beta': 1, 'gamma': 2}}}
    """
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *parts, last = name.split("/")
        branch = tree
        for part in parts:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree


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


def _require_moving_average(folder: RunFolder, latest: str) -> None:
    """Raises an `InputError` for a checkpoint without the moving average of weights."""
    with broken_as_input_error(latest):
        keys = {key for key, _ in tf.train.list_variables(latest)}
    if not any(key.startswith("averages/") for key in keys):
        raise InputError(
            f"{folder.path} holds no moving average of weights. Train with --train.average_decay "
            "0.999, or give another --average: a number of checkpoints, or best."
        )


def _assign_means(
    model: keras.Model, weights: Mapping[str, keras.Variable], paths: Sequence[str], group: str
) -> None:
    """Gives weights of a model their means over a group of values in checkpoints."""
    stored = [_Stored(path, group, weights, model) for path in paths]
    for name, weight in weights.items():
        mean = np.zeros(weight.shape, np.float64)
        for checkpoint in stored:
            mean += checkpoint.read(name) / len(stored)
        weight.assign(mean.astype(np.float32))


class _Stored:
    """A group of values in a checkpoint, by the names of the weights.

    Args:
        path: the checkpoint.
        group: weights or averages.
        weights: the weights that the group holds, by name.
        model: the model of these weights.

    Raises:
        InputError: for a broken checkpoint, and for other weights or shapes.
    """

    def __init__(
        self, path: str, group: str, weights: Mapping[str, keras.Variable], model: keras.Model
    ):
        self.path = path
        with broken_as_input_error(path):
            self._reader = tf.train.load_checkpoint(path)
            shapes = {
                key.removeprefix(f"{group}/").removesuffix(VALUE): shape
                for key, shape in self._reader.get_variable_to_shape_map().items()
                if key.startswith(f"{group}/")
            }
            names: Iterable[str] = weights
            if are_numbered := "0" in shapes:  # of an earlier version
                learned = model.config.position == "learned"
                names = earlier_order(weights, learned)
            stored_names = [str(i) if are_numbered else name for i, name in enumerate(names)]
            _require_same(shapes.keys(), set(stored_names))
            self._keys = dict(zip(names, stored_names, strict=True))
            self._group = group
            for name, key in self._keys.items():
                if shapes[key] != list(weights[name].shape):
                    raise ValueError(
                        f"its weight {key} has the shape {tuple(shapes[key])}, but {name} of the "
                        f"configuration's model has {tuple(weights[name].shape)}"
                    )

    def read(self, name: str) -> np.ndarray:
        """The value of a weight, float64.

        Raises:
            InputError: for a broken checkpoint, or a value that is not finite.
        """
        with broken_as_input_error(self.path):
            value = self._reader.get_tensor(f"{self._group}/{self._keys[name]}{VALUE}")
        value = value.astype(np.float64)
        require_finite(value, self.path)
        return value


def _require_same(stored: Set[str], expected: Set[str]) -> None:
    """Raises a `ValueError` that names a weight which only one of both has."""
    if len(stored) != len(expected):
        raise ValueError(
            f"it has {len(stored)} weights, but the model of the configuration has {len(expected)}"
        )
    if missing := sorted(expected - stored):
        raise ValueError(f"it has no weight {missing[0]}, which the model of the configuration has")
