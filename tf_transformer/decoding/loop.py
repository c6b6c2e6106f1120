"""The loop that every search runs: step after step, until all sentences are done."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from keras import KerasTensor, ops, tree

from tf_transformer.decoding.constraints import Constraints
from tf_transformer.decoding.hypotheses import Growth, Hypotheses

Now = TypeVar("Now", bound=Any)  # a NamedTuple with `state`, and `index`, a scalar; rows a sentence


class Given(NamedTuple):
    """What a search was given for each sentence; () for what it was not."""

    limits: KerasTensor  # int32 (B,)
    min_lengths: KerasTensor | tuple  # int32 (B,)
    prefix: KerasTensor | tuple  # int32 (B, P)

    @classmethod
    def of(cls, limits: KerasTensor, constraints: Constraints) -> "Given":
        """Takes from the constraints what there is one of for each sentence."""
        min_lengths, prefix = constraints.min_lengths, constraints.prefix
        return cls(
            limits,
            () if min_lengths is None else ops.minimum(min_lengths, limits),
            () if prefix is None else prefix,
        )

    def into(self, constraints: Constraints) -> Constraints:
        """The constraints for the sentences that are left."""
        optional = (self.min_lengths, self.prefix)
        min_lengths, prefix = (None if isinstance(f, tuple) else f for f in optional)
        return constraints.for_sentences(min_lengths, prefix)


def run_to_the_end(
    extend: Callable[[Now], Now],
    start: Now,
    is_done: Callable[[Now], KerasTensor],
    result: Callable[[Now], Hypotheses],
    max_length: int | KerasTensor,
    shrink: bool,
    growth: Growth | None = None,
) -> Hypotheses:
    """Extends all sentences until none is left, or `max_length` is reached.

    Args:
        extend: one step.
        start: what there is before the first.
        is_done: which sentences' results are final, bool (B,).
        result: the hypotheses so far.
        max_length: the most steps.
        shrink: whether sentences that are done leave the batch whenever they are half of it, so
            that steps are spent on live ones. The batch's size must be allowed to change: not
            under XLA or JAX, nor in a TensorFlow graph that knows the size.
        growth: how the state gets room as hypotheses grow, without `shrink`. None: it has room.
    """

    def unfinished(now, length=max_length):
        return ops.logical_and(now.index < length, ops.logical_not(ops.all(is_done(now))))

    if not shrink:
        growth = growth or Growth((max_length,), lambda state, _: state)
        now = start
        for length in growth.lengths:
            now = now._replace(state=growth.widen(now.state, length))
            goes_on = functools.partial(unfinished, length=length)
            (now,) = ops.while_loop(goes_on, lambda now: (extend(now),), (now,))
        return result(now)

    def mostly_live(now):
        live = ops.sum(ops.cast(ops.logical_not(is_done(now)), "int32"))
        return ops.logical_and(now.index < max_length, 2 * live > ops.shape(is_done(now))[0])

    def go_on_without_the_done(now, sentences, results):
        (now,) = ops.while_loop(mostly_live, lambda now: (extend(now),), (now,))
        results = tree.map_structure(
            lambda all_rows, rows: ops.scatter_update(all_rows, sentences[:, None], rows),
            *(results, result(now)),
        )
        (live,) = ops.nonzero(ops.logical_not(is_done(now)))
        live = ops.cast(live, "int32")
        return _rows(now, live), ops.take(sentences, live, axis=0), results

    everyone = ops.arange(ops.shape(is_done(start))[0], dtype="int32")
    *_, results = ops.while_loop(
        lambda now, *_: unfinished(now), go_on_without_the_done, (start, everyone, result(start))
    )
    return results


def _rows(now: Any, rows: KerasTensor) -> Any:
    kept = tree.map_structure(
        lambda leaf: ops.take(leaf, rows, axis=0) if len(leaf.shape) else leaf, now
    )
    return kept
