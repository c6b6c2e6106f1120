"""CPU threads: operations on one thread each, several at a time, or one on all."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import tensorflow as tf

from tf_transformer.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
_process = 0  # that has a model


def available_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux, where a container may have few of many
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def require_threads() -> None:
    """Raises an `InputError` in a fork of a process that has called this before.

    Whatever loads a model or computes with one calls it. A fork has none of TensorFlow's threads,
    so most computations in it would wait for ever.
    """
    global _process
    _process = _process or os.getpid()
    if _process != os.getpid():
        raise InputError(
            "this process is a fork of one that has loaded a model, and TensorFlow cannot compute "
            "in a fork. Load the model in each worker and not before the fork, or start workers "
            "with spawn: multiprocessing.get_context('spawn')."
        )


def set_threads(count: int, per_operation: int) -> None:
    """Sets TensorFlow's CPU threads; changes nothing once TensorFlow has computed anything.

    Args:
        count: operations at a time.
        per_operation: threads of each.
    """
    with contextlib.suppress(RuntimeError):  # too late
        tf.config.threading.set_inter_op_parallelism_threads(count)
        tf.config.threading.set_intra_op_parallelism_threads(per_operation)


def parallel_batches(count: int = 0) -> int:
    """The number of batches to predict at a time: `count`, or one per core; 1 with a GPU."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    return count or available_cores()


def use_one_thread_per_batch(count: int = 0) -> None:
    """Gives operations one thread each if several batches are predicted at a time.

    Small operations do not pay for threads of their own. Two batches on a thread each take less
    time than one after the other on two threads.

    Args:
        count: batches at a time; 0: one per core.
    """
    if parallel_batches(count) > 1:
        set_threads(parallel_batches(count), 1)


def in_parallel(
    function: Callable[[Item], Result], items: Iterable[Item], count: int
) -> Iterator[Result]:
    """The results of a function, in the order of its items, computed in `count` threads.

    An error of the function is raised in place of its result, and items that have not begun are
    dropped.

    Example:
        >>> list(in_parallel(str, [3, 1, 2], count=2))
        ['3', '1', '2']
    """
    if count == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(count) as pool:
        yield from pool.map(function, items)  # drops the others when it ends
