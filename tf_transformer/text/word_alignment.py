"""Word alignments: links between positions."""

from typing import Literal

Unit = Literal["words", "pieces"]
Link = tuple[int, int]  # positions in source and target, counted from 0
