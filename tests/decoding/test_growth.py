"""States of fixed size that get room as a search goes on."""

from typing import NamedTuple

import pytest
from keras import KerasTensor, ops

from tf_transformer.decoding import Growth, StepState
from tf_transformer.decoding.loop import run_to_the_end

LENGTHS = (2, 5, 6)


class Now(NamedTuple):
    """A search that writes 1, 2, 3, ... into its state."""

    index: KerasTensor
    state: StepState


@pytest.mark.parametrize("end", [1, 2, 4, 6])
def test_a_state_has_no_more_room_than_the_search_needs_so_far(end):
    rooms = []

    def extend(now: Now) -> Now:
        (row,) = now.state.own
        rooms.append(row.shape[1])
        row = ops.where(ops.equal(ops.arange(row.shape[1]), now.index), now.index + 1, row)
        return Now(now.index + 1, StepState([row]))

    def widen(state: StepState, length: int) -> StepState:
        (row,) = state.own
        return StepState([ops.pad(row, [(0, 0), (0, length - row.shape[1])])])

    start = Now(ops.zeros((), "int32"), StepState([ops.zeros((1, LENGTHS[0]), "int32")]))
    (row,) = run_to_the_end(
        extend,
        start,
        is_done=lambda now: ops.reshape(now.index >= end, (1,)),
        result=lambda now: now.state.own,
        max_length=LENGTHS[-1],
        shrink=False,
        growth=Growth(LENGTHS, widen),
    )
    assert ops.convert_to_numpy(row).tolist() == [[*range(1, end + 1), *[0] * (6 - end)]]
    # Eager TensorFlow runs each step, JAX traces one a length.
    if len(rooms) == end:
        assert rooms == [2, 2, 5, 5, 5, 6][:end]
    assert set(rooms) <= set(LENGTHS)
