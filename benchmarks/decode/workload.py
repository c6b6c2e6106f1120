"""The translations that every system makes: cells of the table, and their exact lengths."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.harness.shapes import END_ID, FIRST_FREE_ID, Shape

SOURCE_TOKENS = 24  # the end token included
LENGTH_PENALTY = 0.6


class Cell(NamedTuple):
    """A column of the table: what a call translates."""

    beam: int
    batch: int
    target_tokens: int = 24  # of every translation

    def __str__(self) -> str:
        search = "greedy" if self.beam == 1 else f"beam {self.beam}"
        length = "" if self.target_tokens == 24 else f", {self.target_tokens} tokens"
        return f"{search}, batch {self.batch}{length}"


def check_lengths(lengths: Iterable[int], sentences: int, tokens: int) -> None:
    """Refuses translations that end early, because they take less time.

    Raises:
        RuntimeError: when there are not `sentences` translations of `tokens` tokens.
    """
    found = [int(length) for length in lengths]
    if found != [tokens] * sentences:
        raise RuntimeError(
            f"expected {sentences} translations of {tokens} tokens each, "
            f"got {len(found)} with lengths {sorted(set(found))}."
        )


def random_sources(shape: Shape, count: int) -> np.ndarray:
    """Source ids (count, SOURCE_TOKENS) for systems that take ids; the end id ends each row."""
    rng = np.random.default_rng(1)
    ids = rng.integers(FIRST_FREE_ID, shape.vocabulary_size, (count, SOURCE_TOKENS))
    ids[:, -1] = END_ID
    return ids
