"""Caches: the keys and values of earlier positions during a search.

A cache has one row for each decoded token. The W hypotheses of a sentence share the rows of this
sentence. An ancestor mask (B, W, R) marks the rows of each hypothesis. When the beam is reordered,
masks move and rows stay. A prompt adds one row for each of its columns at the start.

A cache object holds sizes. `Kept` holds the tensors, and the search passes it from step to step.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.decoding.problem import Size
from tf_transformer.kernels.local_attention import zero_padded
from tf_transformer.layers.stored import KeyValue, Stored
from tf_transformer.machine.thresholds import COMPACTION_INTERVAL


class Kept(NamedTuple):
    """The tensors of a cache between two steps."""

    per_hypothesis: Any  # reordered with the beam: ancestor mask, bool (B, W, R), or states
    per_sentence: Any  # shared by the hypotheses of a sentence


class Step(NamedTuple):
    """The rows that a decoding step attends to."""

    kept: Kept  # with room for the step's own rows
    earlier: Sequence[Stored]  # keys and values of each layer
    mask: KerasTensor | None  # bool (B, 1, W, R) with the step's own rows; None: all rows
    positions: KerasTensor  # int32 (1 or B, R): position of each row


class Cache:
    """The base class of caches; see the module's docstring.

    Args:
        beam_size: number of hypotheses of each sentence, W.
        columns: number of the prompt's columns, P; None: there is no prompt.
        window: number of latest positions that steps attend to; None: all.
    """

    def __init__(self, beam_size: int, columns: Size | None = None, window: int | None = None):
        self.beam_size = beam_size
        self.columns = 0 if columns is None else columns
        self.window = window
        # A single hypothesis without the padding of a prompt sees every row.
        self.sees_all = beam_size == 1 and columns is None

    def start(self, stored: list[Any], visible: KerasTensor | None) -> Kept:
        """Makes the cache before the first step.

        For each layer, `stored` has keys and values of the prompt's P columns, `KeyValue`
        (B, G, P, K), or its state (B, 1, ...). `visible` is bool (B, 1, P), False for padding. P
        may be 0, with None for `visible`.
        """
        raise NotImplementedError

    def begin(self, kept: Kept, index: KerasTensor) -> Step:
        """Makes room for the rows of step `index`, an int32 scalar from 0 on."""
        raise NotImplementedError

    def commit(self, step: Step, stored: list[Any]) -> Kept:
        """Stores the keys and values that a step has returned for each layer."""
        raise NotImplementedError

    def resize(self, kept: Kept, steps: Size) -> Kept:
        """Changes the capacity to a number of steps, if the cache has one."""
        return kept

    def first_ancestors(self, batch: Any, columns: Any, visible: KerasTensor | None) -> KerasTensor:
        """The first ancestor mask (B, W, R), from a prompt's visible columns (B, 1, R), if any."""
        shape = (batch, self.beam_size, columns)
        return ops.zeros(shape, "bool") if visible is None else ops.broadcast_to(visible, shape)

    def own_rows(self, batch: Any) -> KerasTensor:
        """The ancestor mask (B, W, W) of a step's own rows."""
        shape = (batch, self.beam_size, self.beam_size)
        return ops.broadcast_to(ops.eye(self.beam_size, dtype="bool"), shape)


class Rows(NamedTuple):
    """The rows of a growing cache."""

    layers: list[KeyValue]  # (B, G, R, K) each
    positions: KerasTensor  # int32 (B, R)


class GrowingCache(Cache):
    """A cache that grows by W rows in each step, so that early steps are cheap.

    The hypotheses of a beam soon share most of their ancestors. Every `COMPACTION_INTERVAL` steps,
    the rows without a live descendant are removed.
    """

    def start(self, stored: list[KeyValue], visible: KerasTensor | None) -> Kept:
        batch, _, columns, _ = ops.shape(stored[0].key)
        positions = ops.broadcast_to(ops.arange(columns, dtype="int32"), (batch, columns))
        # A computed 0 tells TensorFlow that the number of rows may change.
        none = 0 * ops.sum(positions)
        layers = [KeyValue(*(zero_padded(x, 0, none, 2) for x in layer)) for layer in stored]
        positions = zero_padded(positions, 0, none, 1)
        ancestors = self.first_ancestors(batch, ops.shape(positions)[1], visible)
        return Kept(ancestors, Rows(layers, positions))

    def begin(self, kept: Kept, index: KerasTensor) -> Step:
        position = self.columns + index
        ancestors, rows = self._without_outdated(kept, position)
        batch, beam_size = ops.shape(ancestors)[0], self.beam_size
        if beam_size > 1:
            ancestors, rows = ops.cond(
                ops.equal(index % COMPACTION_INTERVAL, COMPACTION_INTERVAL - 1),
                lambda: _without_dead_rows(ancestors, rows),
                lambda: (ancestors, rows),
            )
        ancestors = ops.concatenate([ancestors, self.own_rows(batch)], axis=2)
        positions = ops.broadcast_to(position, (batch, beam_size))
        positions = ops.concatenate([rows.positions, positions], axis=1)
        mask = None if self.sees_all else ancestors[:, None]
        return Step(Kept(ancestors, Rows(rows.layers, positions)), rows.layers, mask, positions)

    def commit(self, step: Step, stored: list[KeyValue]) -> Kept:
        ancestors, rows = step.kept
        return Kept(ancestors, rows._replace(layers=stored))

    def _without_outdated(self, kept: Kept, position: KerasTensor) -> Kept:
        """Removes or hides the rows before the window.

        The rows of a single hypothesis are sorted by position, so the first ones are removed. With
        several hypotheses, the rows lose their descendants and `_without_dead_rows` removes them.
        """
        if self.window is None:
            return kept
        (ancestors, rows), oldest = kept, position - self.window + 1
        if self.beam_size > 1:
            return Kept(ops.logical_and(ancestors, (rows.positions >= oldest)[:, None]), rows)
        first = ops.sum(ops.cast(rows.positions[:1] < oldest, "int32"))
        layers = [KeyValue(*(x[:, :, first:] for x in layer)) for layer in rows.layers]
        return Kept(ancestors[:, :, first:], Rows(layers, rows.positions[:, first:]))


def _without_dead_rows(ancestors: KerasTensor, rows: Rows) -> tuple[KerasTensor, Rows]:
    """Removes rows without a descendant. All sentences keep the same number of rows."""
    alive = ops.any(ancestors, axis=1)  # (B, R)
    count = ops.max(ops.sum(ops.cast(alive, "int32"), axis=1))
    places = ops.arange(ops.shape(alive)[1], dtype="int32")
    order = ops.where(alive, places, places + ops.shape(alive)[1])  # dead rows come last
    kept = ops.cast(ops.argsort(order, axis=1)[:, :count], "int32")  # (B, R')
    pick = functools.partial(kernels.current().gather, indices=kept, batch_dims=1)
    layers = [KeyValue(*(pick(x, axis=2) for x in layer)) for layer in rows.layers]
    return pick(ancestors, axis=2), Rows(layers, pick(rows.positions, axis=1))


class StateCache(Cache):
    """A cache of one state of constant size for each hypothesis, such as sums over keys.

    The states are reordered with the beam, in place of ancestor masks.
    """

    def start(self, stored: list[Any], visible: KerasTensor | None) -> Kept:
        """Repeats the state (B, 1, ...) after a prompt for each hypothesis: (B, W, ...)."""
        repeated = [
            type(layer)(*(ops.repeat(x, self.beam_size, axis=1) for x in layer)) for layer in stored
        ]
        return Kept(repeated, ())

    def begin(self, kept: Kept, index: KerasTensor) -> Step:
        return Step(kept, kept.per_hypothesis, None, ops.zeros((1, 0), "int32"))

    def commit(self, step: Step, stored: list[Any]) -> Kept:
        return Kept(stored, ())
