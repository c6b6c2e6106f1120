"""A small sample of a long text, for what would take too long with all of it."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Draws a sample from all parts of a sequence, in its order.

    One item of each of `count` equal parts is drawn at random. The first items would be the
    shortest texts of a sorted file, or the texts of one corpus. The places depend only on `count`
    and on the number of items, so all columns of a table give the same rows, and so do all
    processes.
    """
    count = min(count, len(items))
    ends = np.arange(count + 1) * len(items) // max(count, 1)
    return [items[place] for place in np.random.default_rng(0).integers(ends[:-1], ends[1:])]
