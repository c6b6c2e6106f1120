"""CPU threads: several operations at a time on one thread each, or one operation on all."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.machine.gpus import has_gpu
from tf_transformer.machine.limits import available_cores

Item = TypeVar("Item")
Result = TypeVar("Result")
_process = 0  # id of the process that has a model


def require_threads() -> None:
    """Raises an `InputError` in a fork of a process that called this function.

    All functions that load a model or compute with it call this one. A fork has none of
    TensorFlow's threads, so most computations in it would never end.
    """
    global _process
    _process = _process or os.getpid()
    if _process != os.getpid():
        raise InputError(
            "this process is a fork of one that has loaded a model, and TensorFlow cannot compute "
            "in a fork. Load the model in each worker, after the fork, or start workers with "
            "spawn: multiprocessing.get_context('spawn')."
        )


def set_threads(count: int, per_operation: int) -> None:
    """Sets the number of TensorFlow's operations at a time, and of the threads of each.

    It has no effect after TensorFlow's first computation.
    """
    with contextlib.suppress(RuntimeError):  # TensorFlow has already computed something
        tf.config.threading.set_inter_op_parallelism_threads(count)
        tf.config.threading.set_intra_op_parallelism_threads(per_operation)


def parallel_batches(count: int = 0) -> int:
    """Number of batches to predict at a time: `count`, or one for each core; 1 with a GPU."""
    if has_gpu():
        return 1
    return count or available_cores()


def use_one_thread_per_batch(count: int = 0) -> None:
    """Gives each operation one thread if several batches are predicted at a time.

    Small operations gain nothing from several threads, so batches in sequence would take longer.
    """
    if (batches := parallel_batches(count)) > 1:
        set_threads(batches, 1)


def in_parallel(
    function: Callable[[Item], Result], items: Iterable[Item], count: int
) -> Iterator[Result]:
    """Calls a function on all items in `count` threads; yields the results in order.

    If the function raises an error, this generator raises it in place of the result. Items that
    have not started are dropped.
    """
    if count == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(count) as pool:
        yield from pool.map(function, items)  # drops the remaining items when it ends
