"""A small sample of a long text, for what would take too long with all of it."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Draws a sample from all parts of a sequence, in its order.

    The sequence is divided into `count` parts of equal length, to within one item. One item of each
    part is drawn at random. The first items would be the shortest texts of a sorted file, or the
    texts of one corpus.

    The places of the drawn items depend only on `count` and on the number of items. The columns of
    a table thus give the same rows, and each process gives the same sample.
    """
    count = min(count, len(items))
    ends = np.arange(count + 1) * len(items) // max(count, 1)
    return [items[place] for place in np.random.default_rng(0).integers(ends[:-1], ends[1:])]
