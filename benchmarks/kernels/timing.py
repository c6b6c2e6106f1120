"""Times and page faults of short TensorFlow functions, measured in turn."""

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.harness.usage import Usage, usage_of

COPIES = 4  # of the inputs, so that an iteration does not find its input in a cache
_ROUNDS = 5
_SECONDS = 0.05  # of a timed loop

Function = Callable[..., Any]
Loop = Callable[[int], None]  # runs the function so many times


def looped(function: Function, inputs: list[np.ndarray], jit_compile: bool = False) -> Loop:
    """A graph that runs a function many times in one call from Python.

    Args:
        function: function of the inputs as tensors. Its results are summed, so that no part of the
            work can be left out.
        inputs: arrays; floats are copied with small changes.
        jit_compile: whether XLA compiles the loop.
    """
    stacks = [tf.constant(_copies(array)) for array in inputs]

    @tf.function(jit_compile=jit_compile)
    def run(count: tf.Tensor) -> tf.Tensor:
        def body(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            results = tf.nest.flatten(function(*(stack[i % COPIES] for stack in stacks)))
            sums = [tf.reduce_sum(tf.cast(result, tf.float32)) for result in results]
            return i + 1, total + tf.add_n(sums)

        start = tf.constant(0), tf.constant(0.0)
        return tf.while_loop(lambda i, _: i < count, body, start, parallel_iterations=1)[1]

    def loop(count: int) -> None:
        run(tf.constant(count)).numpy()

    loop(1)  # traces and compiles
    return loop


def with_gradients(function: Function) -> Function:
    """The gradients of a function by its float tensors; this computes the function, too."""

    def run(*inputs: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            floats = [x for x in inputs if x.dtype.is_floating]
            tape.watch(floats)
            results = tf.nest.flatten(function(*inputs))
            total = tf.add_n([tf.reduce_sum(tf.sin(result)) for result in results])
        gradients = tape.gradient(total, floats, unconnected_gradients="zero")
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    return run


def measured(loops: Mapping[str, Loop]) -> dict[str, Usage]:
    """The cost of an iteration of each loop; loops take turns.

    Returns:
        medians of the seconds, means of page faults and system time.
    """
    counts = {}
    for name, loop in loops.items():
        loop(1)
        _, first = usage_of(functools.partial(loop, 1))
        counts[name] = max(1, round(_SECONDS / first.seconds))
    found: dict[str, list[Usage]] = {name: [] for name in loops}
    for _ in range(_ROUNDS):
        for name, loop in loops.items():
            found[name].append(usage_of(functools.partial(loop, counts[name]))[1])
    return {name: _per_iteration(usages, counts[name]) for name, usages in found.items()}


def _per_iteration(usages: Sequence[Usage], count: int) -> Usage:
    seconds, faults, system = zip(*usages, strict=True)
    return Usage(
        statistics.median(seconds) / count,
        round(statistics.mean(faults) / count),
        statistics.mean(system) / count,
    )


def _copies(array: np.ndarray) -> np.ndarray:
    """`COPIES` of an array on a new first axis; floats differ a little."""
    stack = np.stack([array] * COPIES)
    if array.dtype.kind == "f":
        stack += np.arange(COPIES, dtype=array.dtype).reshape(-1, *[1] * array.ndim) / 1024
    return stack
