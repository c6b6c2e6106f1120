"""The devices and worker processes of a training run, and values that workers share."""

import functools
import os

import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError


def make_strategy(name: str) -> tf.distribute.Strategy:
    """The distribution strategy for `TrainConfig.strategy`; without GPUs, "mirrored" has CPUs."""
    if name == "multi_worker" and not os.environ.get("TF_CONFIG"):
        raise InputError(
            "train.strategy=multi_worker needs the environment variable TF_CONFIG, which lists all "
            'workers and the index of this process: {"cluster": {"worker": ["host:port", ...]}, '
            '"task": {"type": "worker", "index": 0}}.'
        )
    if is_multi_worker(name):
        return _multi_worker()
    devices = tf.config.list_logical_devices("GPU")
    if name == "one" or (name == "auto" and len(devices) < 2):
        return tf.distribute.get_strategy()
    if name in ("auto", "mirrored"):
        devices = devices or tf.config.list_logical_devices("CPU")
        return _mirrored(tuple(device.name for device in devices))
    raise InputError(f"train.strategy must be auto, one, mirrored or multi_worker, got {name!r}.")


def is_multi_worker(name: str) -> bool:
    """Whether `make_strategy` returns a strategy for several processes."""
    return name == "multi_worker" or (name == "auto" and bool(os.environ.get("TF_CONFIG")))


@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.MirroredStrategy:
    """The strategy of this process, made once.

    A second strategy would number its collectives like the first. TensorFlow stores the shapes of
    collectives by number, so a second training run in this process would fail at other shapes.
    """
    return tf.distribute.MirroredStrategy(list(devices))


@functools.cache
def _multi_worker() -> tf.distribute.MultiWorkerMirroredStrategy:
    """Waits for all workers. Call it before anything else runs on TensorFlow."""
    return tf.distribute.MultiWorkerMirroredStrategy()


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the worker that writes files and prints progress."""
    workers = strategy.cluster_resolver
    return workers is None or not workers.task_id


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """The number of processes that train together."""
    workers = strategy.cluster_resolver
    return 1 if workers is None else max(1, workers.cluster_spec().num_tasks("worker"))


def broadcast(strategy: tf.distribute.Strategy, values: list[float]) -> list[float]:
    """Returns the chief's values on all workers."""
    own = values if is_chief(strategy) else [0.0] * len(values)
    return _sum_over_workers(strategy, own).tolist()


def any_worker(strategy: tf.distribute.Strategy, *flags: bool) -> list[bool]:
    """Whether at least one worker has set each flag; the same answer on all workers."""
    return [bool(count) for count in _sum_over_workers(strategy, list(map(float, flags)))]


def _sum_over_workers(strategy: tf.distribute.Strategy, own: list[float]) -> np.ndarray:
    if num_workers(strategy) == 1:
        return np.array(own)
    total = _summing(strategy)(tf.constant(own, tf.float32))
    return strategy.experimental_local_results(total)[0].numpy()


@functools.cache
def _summing(strategy: tf.distribute.Strategy) -> tf.types.experimental.GenericFunction:
    """The function that adds up the workers' values; traced once, called at each update."""
    replicas_per_worker = strategy.num_replicas_in_sync // num_workers(strategy)

    def summed(own: tf.Tensor) -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, own / replicas_per_worker)

    return tf.function(lambda own: strategy.run(summed, args=(own,)), autograph=False)
