"""The work that every contender does: shapes of the model, cells of the table, exact lengths."""

import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

TOKENS = 24  # of every source and every translation; the end token counts on the source side
LENGTH_PENALTY = 0.6
THREADS = 2
PAD_ID, START_ID, END_ID = 0, 1, 2
FIRST_FREE_ID = 4  # 3: unknown


class Shape(NamedTuple):
    """Sizes of a Transformer."""

    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    vocabulary_size: int

    def __str__(self) -> str:
        return (
            f"{self.num_layers} layers, d_model {self.d_model}, d_ff {self.d_ff}, "
            f"{self.num_heads} heads, vocabulary {self.vocabulary_size:,}"
        )


# Written out: the processes of other contenders import nothing of ours. A test compares them
# with the presets.
SHAPES = {
    "base": Shape(6, 512, 2048, 8, 32_000),
    "tiny": Shape(4, 128, 256, 4, 8000),
}


class Cell(NamedTuple):
    """A column of the table."""

    beam: int
    batch: int

    def __str__(self) -> str:
        return f"{'greedy' if self.beam == 1 else f'beam {self.beam}'}, batch {self.batch}"


class Setting(NamedTuple):
    """What a worker works on.

    Attributes:
        shape: sizes of the model.
        shared: folder of all contenders with this shape.
        own: folder of this contender and shape.
    """

    shape: Shape
    shared: pathlib.Path
    own: pathlib.Path


class Task(NamedTuple):
    """A contender ready to be measured in a cell.

    Attributes:
        sentences: how many a call translates.
        translate: one call, which is timed.
        check: raises an error when what a call gave is not `TOKENS` tokens a sentence.
    """

    sentences: int
    translate: Callable[[], Any]
    check: Callable[[Any], None]


def check_lengths(lengths: Iterable[int], sentences: int) -> None:
    """Refuses translations that stopped early: their speed would be a lie.

    Raises:
        RuntimeError: when there are not `sentences` translations of `TOKENS` tokens.
    """
    found = [int(length) for length in lengths]
    if found != [TOKENS] * sentences:
        raise RuntimeError(
            f"expected {sentences} translations of {TOKENS} tokens each, "
            f"got {len(found)} with lengths {sorted(set(found))}."
        )


def random_sources(shape: Shape, count: int) -> np.ndarray:
    """Source ids (count, TOKENS) for contenders that take ids, each row ending with the end id."""
    rng = np.random.default_rng(1)
    ids = rng.integers(FIRST_FREE_ID, shape.vocabulary_size, (count, TOKENS))
    ids[:, -1] = END_ID
    return ids
