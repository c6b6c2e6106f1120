"""The loop of all searches. It runs steps until all sentences are done."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from keras import KerasTensor, ops, tree

from tf_transformer import kernels
from tf_transformer.decoding.problem import CacheSchedule, Hypotheses, SearchOptions, Size
from tf_transformer.machine.thresholds import SHARE_TO_REMOVE

# A NamedTuple with `state`, the scalar `index`, and `done`, bool (B,), True for sentences with a
# final result.
State = TypeVar("State", bound=Any)


def run_search(
    extend: Callable[[State], State],
    start: State,
    result: Callable[[State], Hypotheses],
    options: SearchOptions,
    cache_schedule: CacheSchedule | None = None,
) -> Hypotheses:
    """Runs steps until all sentences are done, or `options.max_length` is reached.

    With `options.drop_finished`, finished sentences leave the batch. They leave together, when they
    are enough of the batch to pay for a copy of the state. The size of the batch must be able to
    change, so XLA, JAX and TensorFlow graphs with a known size need False.

    `extend` runs one step: from `start` or a later state to the next one. `result` takes a state
    and returns its hypotheses. A `cache_schedule` is for searches without `drop_finished`; without
    one, the state has capacity for the whole search.
    """
    max_length = options.max_length
    if not options.drop_finished:
        schedule = cache_schedule or CacheSchedule((max_length,), lambda state, _: state)
        for length in schedule.capacities:  # one loop for each capacity of the state
            start = start._replace(state=schedule.resize(start.state, length))
            is_running = functools.partial(_is_running, max_length=length)
            (start,) = ops.while_loop(is_running, lambda now: (extend(now),), (start,))
        return result(start)

    def mostly_live(now: State) -> KerasTensor:
        running = ops.cast(ops.logical_not(now.done), "float32")  # (B,)
        return ops.logical_and(now.index < max_length, ops.mean(running) > 1 - SHARE_TO_REMOVE)

    def continue_without_finished(
        now: State, sentences: KerasTensor, results: Hypotheses
    ) -> tuple[State, KerasTensor, Hypotheses]:
        (now,) = ops.while_loop(mostly_live, lambda now: (extend(now),), (now,))
        results = tree.map_structure(
            lambda all_rows, rows: ops.scatter_update(all_rows, sentences[:, None], rows),
            *(results, result(now)),
        )
        (live,) = ops.nonzero(ops.logical_not(now.done))
        live = ops.cast(live, "int32")
        gather = kernels.current().gather
        now = tree.map_structure(  # scalars stay as they are
            lambda leaf: gather(leaf, live) if len(leaf.shape) else leaf, now
        )
        return now, gather(sentences, live), results

    everyone = ops.arange(ops.shape(start.done)[0], dtype="int32")
    *_, results = ops.while_loop(
        lambda now, *_: _is_running(now, max_length),
        continue_without_finished,
        (start, everyone, result(start)),
    )
    return results


def _is_running(now: Any, max_length: Size) -> KerasTensor:
    return ops.logical_and(now.index < max_length, ops.logical_not(ops.all(now.done)))
