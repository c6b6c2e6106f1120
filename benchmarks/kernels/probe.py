"""Probes: each times both sides of a threshold at one size.

A threshold is a constant that a module reads while a function is traced. A probe changes its value,
which forces a side.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.harness.results import Row
from benchmarks.kernels.timing import Loop, measured
from tf_transformer.machine import thresholds

ALWAYS, NEVER = 2**62, 0  # values of a limit

MakeLoop = Callable[[], Loop]


class Probe(NamedTuple):
    """The sides of a threshold at one size.

    Attributes:
        threshold: name of the threshold in `tf_transformer.machine.thresholds`.
        size: the size in words.
        chosen: the side that the code chooses at this size.
        sides: for each side, the function that makes its loop.
    """

    threshold: str
    size: str
    chosen: str
    sides: Mapping[str, MakeLoop]


def forced(
    module: str, threshold: str, values: Mapping[str, Any], make: MakeLoop
) -> dict[str, MakeLoop]:
    """The sides of a threshold that a module reads.

    Args:
        module: name of the module under `tf_transformer`.
        threshold: name of the constant.
        values: for each side, the value that forces it.
        make: function that traces the loop.
    """

    def side(value: Any) -> Loop:
        with replaced(module, threshold, value):
            return make()

    return {name: functools.partial(side, value) for name, value in values.items()}


@contextlib.contextmanager
def replaced(module: str, threshold: str, value: Any) -> Iterator[None]:
    """Gives a module another value of a threshold, until the context ends."""
    found = importlib.import_module(f"tf_transformer.{module}")
    before = getattr(found, threshold)
    setattr(found, threshold, value)
    try:
        yield
    finally:
        setattr(found, threshold, before)


def timed(probe: Probe) -> Row:
    """A row of the table of thresholds."""
    found = measured({side: make() for side, make in probe.sides.items()})
    fastest = min(found, key=lambda side: found[side].seconds)
    return {
        "threshold": probe.threshold,
        "value": str(getattr(thresholds, probe.threshold)),
        "size": probe.size,
        "times_ms": {side: round(1000 * usage.seconds, 4) for side, usage in found.items()},
        "minor_faults": {side: usage.minor_faults for side, usage in found.items()},
        "system_ms": {side: round(1000 * usage.system_seconds, 4) for side, usage in found.items()},
        "chosen": probe.chosen,
        "fastest": fastest,
        "chosen_over_fastest": round(found[probe.chosen].seconds / found[fastest].seconds, 2),
    }
