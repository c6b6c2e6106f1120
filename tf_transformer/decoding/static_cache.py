"""A cache of fixed size for XLA and JAX, and its layout of keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.decoding.cache import Cache, Kept, Step
from tf_transformer.decoding.problem import Size
from tf_transformer.kernels.attention import Dropout, HeadOutput
from tf_transformer.layers.stored import KeyValue


class StaticArrays(NamedTuple):
    """Keys and values with their axes in the order in which XLA multiplies them.

    XLA merges the batch axes of a product. If the cache has merged axes, XLA writes new rows in
    place. Otherwise, each step would copy all keys and values twice. On CPUs, the product of many
    queries with transposed keys takes a third of the time.
    """

    key: KerasTensor  # (B·G, K, S)
    value: KerasTensor  # (B·G, S, K)

    @classmethod
    def of(cls, key_value: KeyValue) -> StaticArrays:
        """Converts keys and values (B, G, S, K) to this layout."""
        batch, groups, rows, _ = ops.shape(key_value.key)  # without rows, -1 could not be inferred
        key, value = (ops.reshape(x, (batch * groups, rows, x.shape[3])) for x in key_value)
        return cls(ops.transpose(key, (0, 2, 1)), value)


@dataclass(frozen=True)
class StaticKeyValue:
    """`Stored` keys and values of fixed size."""

    arrays: StaticArrays
    groups: int  # number of heads of keys and values, G
    start: KerasTensor | int = 0  # the first row that `with_new` writes

    def with_new(self, new: KeyValue) -> StaticKeyValue:
        """Writes `new` (B, G, T, K) from row `start` on."""
        key, value = StaticArrays.of(new)
        arrays = StaticArrays(
            ops.slice_update(self.arrays.key, (0, 0, self.start), key),
            ops.slice_update(self.arrays.value, (0, self.start, 0), value),
        )
        return StaticKeyValue(arrays, self.groups, self.start + new.key.shape[2])

    def weighted(
        self,
        query: KerasTensor,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        dropout: Dropout | None = None,
    ) -> HeadOutput:
        """Attends with queries (B, H, T, K); all sizes but B are known. There is no dropout."""
        return kernels.current().static_attention(query, *self.arrays, self.groups, mask, bias)


class StaticCache(Cache):
    """A cache of fixed size. Each step writes the next rows.

    After the last row, steps overwrite the first ones again. So a cache with fewer rows than the
    search needs keeps the rows of the latest steps.

    `groups` is the number of heads of keys and values, G. `Cache` describes the other arguments.
    """

    def __init__(
        self, beam_size: int, groups: int, columns: Size | None = None, window: int | None = None
    ):
        super().__init__(beam_size, columns, window)
        self.groups = groups

    def start(self, stored: list[KeyValue], visible: KerasTensor | None) -> Kept:
        """Makes a cache without capacity for steps. Call `resize` next."""
        batch, _, columns, _ = ops.shape(stored[0].key)
        ancestors = self.first_ancestors(batch, columns, visible)
        return Kept(ancestors, list(map(StaticArrays.of, stored)))

    def begin(self, kept: Kept, index: KerasTensor) -> Step:
        ancestors, arrays = kept
        batch, rows = ops.shape(ancestors)[0], ops.shape(ancestors)[2]
        own_rows = self.own_rows(batch)
        start = (index * self.beam_size) % (rows - self.columns) + self.columns
        earlier = [StaticKeyValue(layer, self.groups, start) for layer in arrays]
        ancestors = ops.slice_update(ancestors, (0, 0, start), own_rows)
        positions = self._positions(rows, index)
        return Step(Kept(ancestors, arrays), earlier, ancestors[:, None], positions)

    def commit(self, step: Step, stored: list[StaticKeyValue]) -> Kept:
        return Kept(step.kept.per_hypothesis, [layer.arrays for layer in stored])

    def resize(self, kept: Kept, steps: Size) -> Kept:
        rows = self.columns + limited(steps, self.window) * self.beam_size
        ancestors, arrays = kept
        layers = [StaticArrays(_pad(key, rows, 2), _pad(value, rows, 1)) for key, value in arrays]
        return Kept(_pad(ancestors, rows, 2), layers)

    def _positions(self, rows: Size, index: KerasTensor) -> KerasTensor:
        """The position of each row at a step, int32 (1, R); any number for unwritten rows."""
        columns = self.columns
        places = ops.arange(rows, dtype="int32") - columns
        steps = places // self.beam_size
        # The latest step that wrote each row.
        steps = index - (index - steps) % ((rows - columns) // self.beam_size)
        return (columns + ops.where(places < 0, places, steps))[None]


def limited(count: Size, window: int | None) -> Size:
    """`count`, or `window` if there is a window and it is smaller."""
    if window is None:
        return count
    return min(window, count) if isinstance(count, int) else ops.minimum(window, count)


def _pad(x: KerasTensor, size: Size, axis: int) -> KerasTensor:
    """Pads `x` with zeros at the end of an axis, up to a size."""
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)
