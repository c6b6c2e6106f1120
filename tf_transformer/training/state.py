"""Everything that the next update depends on, by the names of the weights, for checkpoints."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.models.adapters import checksum, is_adapter, own_weights
from tf_transformer.models.names import by_name
from tf_transformer.run.earlier_weights import earlier_order
from tf_transformer.run.weights import BASE, as_tree
from tf_transformer.training.update import Updater


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
        base[BASE] = tf.Variable(checksum(updater.model), dtype=tf.int64)
    return {
        "weights": as_tree({name: weight.value for name, weight in own.items()}),
        **base,
        "optimizer": {
            "moments": as_tree(_named(trained, optimizer.moments)),
            "squares": as_tree(_named(trained, optimizer.squares)),
            "counts": {x.name: x.value for x in _without(slots, optimizer.variables)},
        },
        "averages": as_tree(_named(trained, optimizer.averages)),
        "random_state": [x.value for x in (*noise, *updater.loss.variables)],
    }


def numbered_state(updater: Updater) -> dict[str, list[tf.Variable]]:
    """The parts with numbers in place of names, as versions before 0.3 stored them."""
    weights, optimizer = by_name(updater.model), updater.optimizer
    order = earlier_order(weights, updater.model.config.position == "learned")
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
        "weights": _in_order(order, {name: weight.value for name, weight in weights.items()}),
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
