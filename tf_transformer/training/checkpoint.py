"""Writes the checkpoints of a run, and resumes from them."""

import pathlib
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.files.reading import literal
from tf_transformer.models.adapters import checksum, is_adapter, own_weights
from tf_transformer.models.names import by_name
from tf_transformer.run import weights
from tf_transformer.run.earlier import earlier_order
from tf_transformer.run.folder import RunFolder
from tf_transformer.training.early_stopping import EarlyStopping
from tf_transformer.training.stages import Stages
from tf_transformer.training.update import Updater


class Checkpoints:
    """Writes and restores the checkpoints of a training run.

    `checkpoints/resume` holds one checkpoint with everything that the next update depends on:
    weights, optimizer (its counts determine the next batch), averages, random states, the best
    score and the stages that have begun. `checkpoints/` holds the weights of the newest validation
    intervals. `checkpoints/best` holds the weights with the best score.

    The data of a checkpoint is on disk before one rename makes the checkpoint the latest. The
    previous checkpoint is deleted after the rename. The weights of an interval are written before
    the checkpoint for resuming. If a run dies between both, it trains the interval again from the
    previous checkpoint, and gets the same weights.
    """

    def __init__(
        self,
        folder: RunFolder,
        updater: Updater,
        early_stopping: EarlyStopping,
        keep: int,
        stages: Stages,
    ):
        self._updater = updater
        self._parts = {
            **named_state(updater),
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
        if stages.state:
            self._parts["stages"] = stages.state
        self._starting = folder.starting
        for place in (folder.checkpoints, folder.best, folder.resume):
            weights.checkpoints_in(place)  # checks; a manager would read a broken list as empty
        names = {"weights", weights.BASE} & {*self._parts}  # of what predictions depend on
        predicting = tf.train.Checkpoint(**{name: self._parts[name] for name in names})
        self._intervals = _manager(predicting, folder.checkpoints, keep)
        self._best = _manager(predicting, folder.best, 1)
        self._resume = _manager(tf.train.Checkpoint(**self._parts), folder.resume, 1)

    def resume(self) -> None:
        """Restores the latest checkpoint if there is one; an `InputError` for a broken one."""
        for manager in (self._intervals, self._best, self._resume):
            _remove_unfinished(manager)
        if latest := self._resume.latest_checkpoint:
            if weights.BASE in self._parts:
                weights.require_base(latest, self._updater.model)
            with weights.broken_as_input_error(latest):
                self._restore(latest)
            for weight in self._updater.model.weights:
                weights.require_finite(np.asarray(weight), latest)

    def _restore(self, latest: str) -> None:
        stored = {x.removesuffix(weights.VALUE) for x, _ in tf.train.list_variables(latest)}
        parts = self._parts
        if "weights/0" in stored:
            parts = parts | numbered_state(self._updater)
        groups = {name.partition("/")[0] for name in stored}
        parts = {name: part for name, part in parts.items() if name in groups}
        tf.train.Checkpoint(**parts).restore(latest).assert_consumed()

    @property
    def latest(self) -> int:
        """Number of updates in the latest checkpoint for resuming; 0 without a checkpoint."""
        path = tf.train.latest_checkpoint(self._resume.directory)
        return weights.update_of(path) if path else 0

    def save(self) -> None:
        """Saves everything that the training needs to resume at this update."""
        self._save(self._resume)
        self._starting.unlink(missing_ok=True)

    def save_best(self) -> None:
        """Saves the weights as the best ones."""
        self._save(self._best)

    def save_interval(self, is_best: bool) -> None:
        """Saves the weights at the end of a validation interval, then the rest."""
        self._save(self._intervals)
        if is_best:
            self.save_best()
        self.save()

    def _save(self, manager: tf.train.CheckpointManager) -> None:
        try:
            manager.save(checkpoint_number=self._updater.next_batch)
        except (OSError, tf.errors.OpError) as error:
            _remove_unfinished(manager)
            reason = str(error).rpartition("}} ")[2]  # after TensorFlow's name of the operation
            raise InputError(
                f"the checkpoint cannot be written to {manager.directory}: {reason}. The "
                "previous checkpoint is whole. Free disk space or make the folder writable, then "
                "give the same command again."
            ) from error


def _manager(
    checkpoint: tf.train.Checkpoint, folder: pathlib.Path, keep: int
) -> tf.train.CheckpointManager:
    folder.mkdir(parents=True, exist_ok=True)
    return tf.train.CheckpointManager(
        checkpoint, literal(folder), max_to_keep=keep, checkpoint_name="step"
    )


def _remove_unfinished(manager: tf.train.CheckpointManager) -> None:
    """Removes the temporary files of interrupted saves."""
    for folder in pathlib.Path(manager.directory).glob("step-*_temp"):
        shutil.rmtree(folder, ignore_errors=True)


def named_state(updater: Updater) -> dict[str, Any]:
    """The parts of a checkpoint: weights, optimizer, moving averages and random states.

    The optimizer has a moment and a mean square for each trained weight, and counts. Random states
    have no names: they only determine noise.
    """
    optimizer = updater.optimizer
    trained = _trained_names(updater.model)
    slots = [*optimizer.moments, *optimizer.squares, *optimizer.averages]
    noise = _without(updater.model.weights, updater.model.variables)
    own = own_weights(updater.model)  # its adapters alone, if it has some
    base: dict[str, Any] = {}  # the checksum of the weights that adapters belong to
    if any(map(is_adapter, own)):
        base[weights.BASE] = tf.Variable(checksum(updater.model), dtype=tf.int64)
    return {
        "weights": weights.as_tree({name: weight.value for name, weight in own.items()}),
        **base,
        "optimizer": {
            "moments": weights.as_tree(_named(trained, optimizer.moments)),
            "squares": weights.as_tree(_named(trained, optimizer.squares)),
            "counts": {x.name: x.value for x in _without(slots, optimizer.variables)},
        },
        "averages": weights.as_tree(_named(trained, optimizer.averages)),
        "random_state": [x.value for x in (*noise, *updater.loss.variables)],
    }


def numbered_state(updater: Updater) -> dict[str, list[tf.Variable]]:
    """The parts with numbers in place of names, as versions before 0.3 stored them."""
    named, optimizer = by_name(updater.model), updater.optimizer
    order = earlier_order(named, updater.model.config.position == "learned")
    trained = _trained_names(updater.model)
    moments, squares, averages = (
        _in_order(order, _named(trained, slots))
        for slots in (optimizer.moments, optimizer.squares, optimizer.averages)
    )
    pairs = [x for pair in zip(moments, squares, strict=True) for x in pair]
    slots = {id(x) for x in (*optimizer.moments, *optimizer.squares, *optimizer.averages)}
    start = next(i for i, x in enumerate(optimizer.variables) if id(x) in slots)
    before, others = optimizer.variables[:start], optimizer.variables[start:]
    return {
        "weights": _in_order(order, {name: weight.value for name, weight in named.items()}),
        "optimizer": [
            *(x.value for x in before),
            *pairs,
            *(x.value for x in others if id(x) not in slots),
        ],
        "averages": averages,
    }


def _trained_names(model: keras.Model) -> list[str]:
    """The names of the trained weights, in the order of the optimizer's variables."""
    names = {id(weight): name for name, weight in by_name(model).items()}
    return [names[id(weight)] for weight in model.trainable_variables]


def _named(names: Sequence[str], slots: Sequence[keras.Variable]) -> dict[str, tf.Variable]:
    """The optimizer's variables of trained weights by name; {} if it keeps none."""
    return {name: x.value for name, x in zip(names, slots, strict=True)} if slots else {}


def _in_order(order: Iterable[str], values: dict[str, tf.Variable]) -> list[tf.Variable]:
    return [values[name] for name in order if name in values]


def _without(
    some: Sequence[keras.Variable], variables: Sequence[keras.Variable]
) -> list[keras.Variable]:
    left_out = {id(variable) for variable in some}
    return [variable for variable in variables if id(variable) not in left_out]
