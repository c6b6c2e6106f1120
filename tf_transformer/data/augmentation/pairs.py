"""What all changes of a text share: pairs of texts, and draws from a random generator."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

Pair = tuple[str, str]
"""a source and a target text"""

Change = Callable[[Pair, np.random.Generator], Pair]
"""change(pair, rng) -> pair. Equal states of the generator give equal results.

A pair that does not suit the change stays as it is.
"""

END_MARK = re.compile(r"(?<=\w)[.!?…。！？]+$")


def chosen(items: Sequence[T], rng: np.random.Generator) -> T:
    """Draws one of the items; each has the same probability."""
    return items[int(rng.integers(len(items)))]


def happens(probability: float, rng: np.random.Generator) -> bool:
    """Draws whether an event of this probability happens."""
    return bool(rng.random() < probability)
