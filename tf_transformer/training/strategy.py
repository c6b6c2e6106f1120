"""Which devices and threads a training runs on, and what each replica gets of a batch."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from tf_transformer.data.batching import IdBatch
from tf_transformer.errors import InputError

# Each has gradients of its own, which take as much memory as the model, and are added up.
MOST_SHARES = 8


def make_strategy(name: str) -> tf.distribute.Strategy:
    """The distribution strategy for `train.strategy`.

    Args:
        name: one (the first GPU, or the CPU); mirrored (every GPU, or every logical CPU);
            multi_worker (the processes that TF_CONFIG lists); or auto: multi_worker where
            TF_CONFIG is set, mirrored where there is more than one GPU.

    Raises:
        InputError: for another name, or for multi_worker without TF_CONFIG.
    """
    listed = bool(os.environ.get("TF_CONFIG"))
    if name == "multi_worker" and not listed:
        raise InputError(
            "train.strategy=multi_worker needs the environment variable TF_CONFIG, which lists all "
            'workers and says which one this is: {"cluster": {"worker": ["host:port", ...]}, '
            '"task": {"type": "worker", "index": 0}}.'
        )
    if name == "multi_worker" or (name == "auto" and listed):
        return _multi_worker()
    devices = tf.config.list_logical_devices("GPU")
    if name == "one" or (name == "auto" and len(devices) < 2):
        return tf.distribute.get_strategy()
    if name in ("auto", "mirrored"):
        devices = devices or tf.config.list_logical_devices("CPU")
        return _mirrored(tuple(device.name for device in devices))
    raise InputError(f"train.strategy must be auto, one, mirrored or multi_worker, got {name!r}.")


@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.MirroredStrategy:
    """One strategy a process: a second would number its collectives like the first.

    TensorFlow keeps the shapes of collectives by those numbers, and a second training in the
    process would fail with a shape mismatch.
    """
    return tf.distribute.MirroredStrategy(list(devices))


@functools.cache
def _multi_worker() -> tf.distribute.MultiWorkerMirroredStrategy:
    """Waits for all workers; must come before anything else runs on TensorFlow."""
    return tf.distribute.MultiWorkerMirroredStrategy()


def use_threads(count: int = 0, jit_compile: bool = False) -> int:
    """Shares out a processor's threads; must come before TensorFlow computes anything.

    Later, and where there is a GPU, threads stay as they are.

    Args:
        count: threads of a training; 0: as many as this process may use cores.
        jit_compile: whether XLA compiles it, which is faster with a batch as a whole.

    Returns:
        into how many shares each batch is best divided.

    Example:
        >>> use_threads(2)
        2
    """
    if tf.config.list_physical_devices("GPU"):
        return 1
    count = count or _available_cores()
    shares = 1 if jit_compile else min(count, MOST_SHARES)
    with contextlib.suppress(RuntimeError):  # too late
        tf.config.threading.set_inter_op_parallelism_threads(count)
        tf.config.threading.set_intra_op_parallelism_threads(count // shares)
    return shares


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux, where a container may have few of many
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one of all workers that writes files and tells of progress."""
    workers = strategy.cluster_resolver
    return workers is None or not workers.task_id


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """How many processes train together."""
    workers = strategy.cluster_resolver
    return 1 if workers is None else max(1, workers.cluster_spec().num_tasks("worker"))


@contextlib.contextmanager
def share_out(
    strategy: tf.distribute.Strategy, batches: Callable[[], Iterator[IdBatch]], size: int = 1
) -> Iterator[Iterator[tuple[IdBatch, ...]]]:
    """Gives every replica its share of the rows of each batch, `size` batches at a time.

    Rows go round the replicas like cards. A batch holds rows of about the same length, so each
    replica has about as many tokens; where there are fewer rows than replicas, some get a row of
    padding, which counts for nothing.

    Args:
        strategy: of all replicas.
        batches: starts an iterator over whole batches, the same on every worker.
        size: how many batches an element holds.

    Yields:
        an iterator whose elements are, for every replica, `size` batches of B / replicas rows; it
        ends with the context at the latest.
    """
    replicas = strategy.num_replicas_in_sync
    ended = threading.Event()

    def of_this_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        count = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * count

        def shares():
            same = [batches()] * size
            for group in zip(*same, strict=False):  # each takes the next of the same iterator
                if ended.is_set():
                    return
                for replica in range(first, first + count):
                    yield tuple(_share(batch, replica, replicas) for batch in group)

        spec = tf.TensorSpec((None, None), tf.int32)
        signature = ((spec, spec),) * size
        dataset = tf.data.Dataset.from_generator(shares, output_signature=signature)
        return dataset.prefetch(4 * count)

    elements = iter(strategy.distribute_datasets_from_function(of_this_worker))
    try:
        yield elements
    finally:
        ended.set()
        if num_workers(strategy) == 1:  # several would have to agree on what is left
            _drain(elements)


def _drain(elements: Iterator) -> None:
    """Takes what is made ahead, up to the end.

    While an iterator lives, and after an error its traceback keeps it alive, a thread of tf.data
    may be in Python when the process exits; Python stops that thread, and the exit waits for it
    forever.
    """
    with contextlib.suppress(tf.errors.OpError):  # told before, if it came from the batches
        for _ in elements:
            pass


def _share(batch: IdBatch, replica: int, replicas: int) -> IdBatch:
    if replica < len(batch[0]):
        return batch[0][replica::replicas], batch[1][replica::replicas]
    return batch[0][:1] * 0, batch[1][:1] * 0


def tell_all(strategy: tf.distribute.Strategy, values: list[float]) -> list[float]:
    """The chief's numbers, on every worker; what others give does not count."""
    if num_workers(strategy) == 1:
        return values
    own = values if is_chief(strategy) else [0.0] * len(values)
    return _sum_over_workers(strategy, own).tolist()


def any_of_all(strategy: tf.distribute.Strategy, flag: bool) -> bool:
    """Whether any worker's flag is set."""
    if num_workers(strategy) == 1:
        return flag
    return bool(_sum_over_workers(strategy, [float(flag)])[0])


def _sum_over_workers(strategy: tf.distribute.Strategy, own: list[float]) -> np.ndarray:
    total = _summing(strategy)(tf.constant(own, tf.float32))
    return strategy.experimental_local_results(total)[0].numpy()


@functools.cache
def _summing(strategy: tf.distribute.Strategy) -> tf.types.experimental.GenericFunction:
    """Adds up what workers give; traced once, because it is called at every update."""
    replicas_of_one = strategy.num_replicas_in_sync // num_workers(strategy)

    def summed(own: tf.Tensor) -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, own / replicas_of_one)

    return tf.function(lambda own: strategy.run(summed, args=(own,)))
