"""Which devices a training runs on."""

import functools

import tensorflow as tf

from tf_transformer.errors import InputError


def make_strategy(name: str) -> tf.distribute.Strategy:
    """The distribution strategy for `train.strategy`.

    Args:
        name: one (the first GPU, or the CPU), mirrored (every GPU, or every logical CPU), or
            auto: mirrored when there is more than one GPU.

    Raises:
        InputError: for another name.
    """
    devices = tf.config.list_logical_devices("GPU")
    if name == "one" or (name == "auto" and len(devices) < 2):
        return tf.distribute.get_strategy()
    if name in ("auto", "mirrored"):
        devices = devices or tf.config.list_logical_devices("CPU")
        return _mirrored(tuple(device.name for device in devices))
    raise InputError(f"train.strategy must be auto, one or mirrored, got {name!r}.")


@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.MirroredStrategy:
    """One strategy a process: a second would number its collectives like the first.

    TensorFlow keeps the shapes of collectives by those numbers, and a second training in the
    process would fail with a shape mismatch.
    """
    return tf.distribute.MirroredStrategy(list(devices))
