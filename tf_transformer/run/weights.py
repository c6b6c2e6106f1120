"""Reads weights from the checkpoints of a run, and averages them (paper section 6.1)."""

import contextlib
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.files.reading import literal
from tf_transformer.models import adapters
from tf_transformer.models.names import by_name
from tf_transformer.run.earlier import earlier_order
from tf_transformer.run.folder import RunFolder

Average = int | Literal["best", "ema"]
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # ends TensorFlow's key of a variable
BASE = "base"  # the key of the checksum of the weights that adapters belong to


def load_weights(folder: RunFolder, model: keras.Model, average: Average) -> int:
    """Gives a built model weights from the checkpoints of a run.

    Args:
        folder: the run's folder.
        model: the built model.
        average: number of the newest checkpoints to average, or all if the run has fewer. best: the
            checkpoint with the best score. ema: the moving average of all updates.

    Returns:
        the number of checkpoints that were read.

    Raises:
        InputError: when the run does not have these weights; when a checkpoint is broken, has
            weights that are not finite, or belongs to another model.
    """
    paths = _paths(folder, average)
    group = "averages" if average == "ema" else "weights"
    stored = [(path, *_open(path, group, model)) for path in paths]
    for name, weight in by_name(model).items():
        mean = np.zeros(weight.shape, np.float64)
        for path, reader, keys in stored:
            mean += _read(reader, keys[name], path) / len(paths)
        weight.assign(mean.astype(np.float32))
    return len(paths)


def load_adapters(folder: RunFolder, model: keras.Model, average: Average) -> int:
    """Adds the product of each adapter of a run to the kernel that it belongs to.

    Several checkpoints give the mean of their products, so that the result is the mean of the
    models that they stand for. The arguments and the result are those of `load_weights`.
    """
    weights, paths = by_name(model), _paths(folder, average)
    added = {name: np.zeros(x.shape) for name, x in weights.items() if name.endswith("/kernel")}
    for path in paths:
        require_base(path, model)
        with broken_as_input_error(path):
            reader = tf.train.load_checkpoint(path)
            keys = [key.removesuffix(VALUE) for key in reader.get_variable_to_shape_map()]
            for stem in {key.rpartition("/")[0] for key in keys if adapters.is_adapter(key)}:
                a, b = (_read(reader, f"{stem}/{x}", path) for x in (adapters.A, adapters.B))
                added[f"{stem.removeprefix('weights/')}/kernel"] += a @ b / len(paths)
    for name, product in added.items():
        weights[name].assign((np.asarray(weights[name]) + product).astype(np.float32))
    return len(paths)


def require_base(path: str, model: keras.Model) -> None:
    """Raises an `InputError` for a model with other weights than the adapters in a checkpoint."""
    with broken_as_input_error(path):
        stored = int(tf.train.load_checkpoint(path).get_tensor(f"{BASE}{VALUE}"))
    if stored != adapters.checksum(model):
        raise InputError(
            f"the adapters in {path} were trained with other weights than those in the run of "
            "train.init_from now. Restore that run as it was, or train again."
        )


def save_weights(
    folder: RunFolder, weights: Mapping[str, keras.Variable], dtype: str, update: int
) -> None:
    """Writes the only checkpoint of a run's folder."""
    stored = {name: tf.Variable(tf.cast(x.value, dtype)) for name, x in weights.items()}
    folder.checkpoints.mkdir(parents=True, exist_ok=True)
    checkpoint = tf.train.Checkpoint(weights=as_tree(stored))
    manager = tf.train.CheckpointManager(checkpoint, literal(folder.checkpoints), 1)
    manager.save(checkpoint_number=update)


def as_tree(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the parts of their names, so that a checkpoint's keys are the names."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *parts, last = name.split("/")
        branch = tree
        for part in parts:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree


def updates_of(folder: RunFolder, average: Average) -> list[int]:
    """The numbers of updates of the checkpoints that `load_weights` reads, in rising order."""
    return [update_of(path) for path in _paths(folder, average)]


def update_of(checkpoint: str) -> int:
    """The number of updates in the name of a checkpoint."""
    return int(checkpoint.rpartition("-")[2])


def checkpoints_in(folder: str | os.PathLike) -> list[str]:
    """The paths of checkpoints in TensorFlow's list in a folder, oldest first; [] without it."""
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
    paths = paths[-(average if isinstance(average, int) else 1) :]
    if average == "ema":
        with broken_as_input_error(paths[0]):
            keys = {key for key, _ in tf.train.list_variables(paths[0])}
        if not any(key.startswith("averages/") for key in keys):
            raise InputError(
                f"{folder.path} holds no moving average of weights. Train with "
                "--train.average_decay 0.999, or give another --average: a number of checkpoints, "
                "or best."
            )
    return paths


def _open(path: str, group: str, model: keras.Model) -> tuple[Any, dict[str, str]]:
    """A checkpoint, and the keys in its group weights or averages of all weights of a model."""
    weights = by_name(model)
    with broken_as_input_error(path):
        reader = tf.train.load_checkpoint(path)
        shapes = {
            key.removeprefix(f"{group}/").removesuffix(VALUE): shape
            for key, shape in reader.get_variable_to_shape_map().items()
            if key.startswith(f"{group}/")
        }
        keys = {name: name for name in weights}
        if "0" in shapes:  # numbers, of an earlier version
            order = earlier_order(weights, model.config.position == "learned")
            keys = {name: str(number) for number, name in enumerate(order)}
        if len(shapes) != len(keys):
            raise ValueError(
                f"it has {len(shapes)} weights, but the model of the configuration has {len(keys)}"
            )
        if missing := sorted({*keys.values()} - shapes.keys()):
            raise ValueError(
                f"it has no weight {missing[0]}, which the model of the configuration has"
            )
        for name, key in keys.items():
            if shapes[key] != list(weights[name].shape):
                raise ValueError(
                    f"its weight {key} has the shape {tuple(shapes[key])}, but {name} of the "
                    f"configuration's model has {tuple(weights[name].shape)}"
                )
    return reader, {name: f"{group}/{key}" for name, key in keys.items()}


def _read(reader: Any, key: str, path: str) -> np.ndarray:
    """A value in a checkpoint, float64; an `InputError` for one that is broken or not finite."""
    with broken_as_input_error(path):
        value = reader.get_tensor(f"{key}{VALUE}")
    value = value.astype(np.float64)
    require_finite(value, path)
    return value
