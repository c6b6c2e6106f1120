"""The devices and worker processes of a training run: shared values, and batches of replicas."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from tf_transformer.data.tokens import Batch
from tf_transformer.errors import InputError
from tf_transformer.training import slurm


def make_strategy(name: str) -> tf.distribute.Strategy:
    """The distribution strategy for `TrainConfig.strategy`; without GPUs, "mirrored" has CPUs."""
    if name == "multi_worker" and not os.environ.get("TF_CONFIG"):
        if not slurm.is_step(os.environ):
            raise InputError(
                "train.strategy=multi_worker needs the environment variable TF_CONFIG, which lists "
                'all workers and the index of this process: {"cluster": {"worker": ["host:port", '
                '...]}, "task": {"type": "worker", "index": 0}}. On SLURM, srun sets what it needs.'
            )
        os.environ["TF_CONFIG"] = slurm.tf_config(os.environ)
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
    return worker_number(strategy) == 0


def worker_number(strategy: tf.distribute.Strategy) -> int:
    """The number of this process among those that train together, from 0."""
    workers = strategy.cluster_resolver
    if workers is None:
        return 0
    chiefs = _num_tasks(strategy, "chief") if workers.task_type == "worker" else 0
    return chiefs + (workers.task_id or 0)


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """The number of processes that train together."""
    return max(1, _num_tasks(strategy, "chief") + _num_tasks(strategy, "worker"))


def _num_tasks(strategy: tf.distribute.Strategy, kind: str) -> int:
    workers = strategy.cluster_resolver
    spec = workers and workers.cluster_spec()
    return spec.num_tasks(kind) if spec and kind in spec.jobs else 0


def broadcast(strategy: tf.distribute.Strategy, values: list[float]) -> list[float]:
    """Returns the chief's values on all workers."""
    own = values if is_chief(strategy) else [0.0] * len(values)
    return _sum_over_workers(strategy, own).tolist()


def any_worker(strategy: tf.distribute.Strategy, *flags: bool) -> list[bool]:
    """Whether at least one worker has set each flag; the same answer on all workers."""
    return [bool(count) for count in _sum_over_workers(strategy, list(map(float, flags)))]


def smallest(strategy: tf.distribute.Strategy, value: int) -> int:
    """The smallest of the workers' values, below 2^24; the same answer on all workers."""
    own = np.zeros(num_workers(strategy))
    own[worker_number(strategy)] = value
    return int(_sum_over_workers(strategy, own.tolist()).min())


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


@contextlib.contextmanager
def replica_batches(
    strategy: tf.distribute.Strategy,
    names: Sequence[str],
    batches: Callable[[], Iterator[Batch]],
    size: int = 1,
    own: bool = False,
) -> Iterator[Iterator[tuple[Batch, ...]]]:
    """Gives each replica its rows of each batch, `size` batches at a time.

    Replica r of R gets rows r, r + R, r + 2R, …. The rows of a batch have similar lengths, so all
    replicas get about the same number of tokens. With fewer rows than replicas, some replicas get
    a row of padding, which adds nothing to the loss. The function `batches` starts an iterator over
    whole batches, the same on each worker. `own`: each worker has batches of its own, which its
    replicas alone divide. `names` are those of the ids in a batch.
    """
    replicas = strategy.num_replicas_in_sync
    ended = threading.Event()

    def of_this_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        count = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * count

        def of_replicas() -> Iterator[tuple[Batch, ...]]:
            same = [batches()] * size
            for group in zip(*same, strict=False):  # the next `size` batches of one iterator
                if ended.is_set():
                    return
                for replica in range(count) if own else range(first, first + count):
                    among = count if own else replicas
                    yield tuple(rows_of_replica(batch, replica, among) for batch in group)

        spec = dict.fromkeys(names, tf.TensorSpec((None, None), tf.int32))
        dataset = tf.data.Dataset.from_generator(of_replicas, output_signature=(spec,) * size)
        return dataset.prefetch(4 * count)

    elements = iter(strategy.distribute_datasets_from_function(of_this_worker))
    try:
        yield elements
    finally:
        ended.set()
        if num_workers(strategy) == 1:  # several workers would have to agree on the last element
            # As long as the iterator lives, a thread of tf.data may run Python code at the exit of
            # the process. Python stops that thread, and the exit waits for it forever. After an
            # error, the traceback keeps the iterator alive. So all prefetched elements are taken.
            with contextlib.suppress(tf.errors.OpError):  # of the batches, which was raised before
                for _ in elements:
                    pass


def rows_of_replica(batch: Batch, replica: int, replicas: int) -> Batch:
    """The rows of one replica; a row of padding if the batch has no row for the replica."""
    return {
        name: ids[replica::replicas] if replica < len(ids) else ids[:1] * 0
        for name, ids in batch.items()
    }
