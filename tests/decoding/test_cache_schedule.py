"""Static states whose capacity rises during a search."""

from typing import NamedTuple

import keras
import pytest
from keras import KerasTensor, ops

from tf_transformer.decoding import CacheSchedule, SearchOptions, SpecialIds, StepState
from tf_transformer.decoding.loop import run_search

CAPACITIES = (2, 5, 6)


class Counting(NamedTuple):
    """A search that writes 1, 2, 3, ... into its state."""

    index: KerasTensor
    state: StepState
    steps: KerasTensor

    @property
    def done(self) -> KerasTensor:
        return ops.reshape(self.index >= self.steps, (1,))


@pytest.mark.parametrize("steps", [1, 2, 4, 6])
def test_state_has_the_smallest_capacity_that_holds_the_steps_so_far(steps):
    capacities = []

    def extend(now: Counting) -> Counting:
        (row,) = now.state.per_hypothesis
        capacities.append(row.shape[1])
        row = ops.where(ops.equal(ops.arange(row.shape[1]), now.index), now.index + 1, row)
        return now._replace(index=now.index + 1, state=StepState([row]))

    def resize(state: StepState, capacity: int) -> StepState:
        (row,) = state.per_hypothesis
        return StepState([ops.pad(row, [(0, 0), (0, capacity - row.shape[1])])])

    (row,) = run_search(
        extend,
        Counting(
            ops.zeros((), "int32"),
            StepState([ops.zeros((1, CAPACITIES[0]), "int32")]),
            ops.convert_to_tensor(steps, "int32"),
        ),
        result=lambda now: now.state.per_hypothesis,
        options=SearchOptions(CAPACITIES[-1], SpecialIds(pad=0, start=1, end=2)),
        cache_schedule=CacheSchedule(CAPACITIES, resize),
    )
    assert ops.convert_to_numpy(row).tolist() == [[*range(1, steps + 1), *[0] * (6 - steps)]]
    if keras.backend.backend() != "jax":  # JAX traces one step per capacity
        assert capacities == [2, 2, 5, 5, 5, 6][:steps]
    assert set(capacities) <= set(CAPACITIES)
