"""The sentences that this project's systems translate, and the scores of the full translations.

The strings of a SavedModel do not show their numbers of tokens, but the scores do: a score is a sum
over the tokens, so a shorter translation has a different score.
"""

import json
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.decode.workload import Cell
from benchmarks.harness.tasks import Setting

# Other kernels round differently, which decides near ties differently and moves a score a
# little. Three tokens fewer move it by more than this.
_TOLERANCE = 0.05


def saved_model_path(setting: Setting, cell: Cell) -> pathlib.Path:
    """The SavedModel of a system for a beam and a length."""
    return setting.own / f"saved_model-{_name(cell)}"


def write_expected(
    setting: Setting, cell: Cell, sentences: Sequence[str], scores: Sequence[float]
) -> None:
    """Stores the sentences and scores with which each call of this beam and length is compared."""
    setting.own.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"sentences": list(sentences), "scores": list(scores)})
    _path(setting, cell).write_text(content, "utf-8")


def read_expected(
    setting: Setting, cell: Cell
) -> tuple[list[str], Callable[[Sequence[float]], None]]:
    """The sentences of a cell, and a function that refuses wrong scores; see `check_scores`."""
    content = json.loads(_path(setting, cell).read_text("utf-8"))
    scores = content["scores"][: cell.batch]
    return content["sentences"][: cell.batch], lambda found: check_scores(found, scores)


def check_scores(found: Sequence[float], expected: Sequence[float]) -> None:
    """Checks that the scores belong to translations of full length.

    Raises:
        RuntimeError: when the numbers of scores differ, or a score differs by more than rounding.
    """
    same = len(found) == len(expected) and np.allclose(found, expected, rtol=_TOLERANCE, atol=0)
    if not same:
        raise RuntimeError(
            f"expected the scores {np.round(expected, 3).tolist()}, "
            f"got {np.round(found, 3).tolist()}: these are not the full translations."
        )


def _path(setting: Setting, cell: Cell) -> pathlib.Path:
    return setting.own / f"expected-{_name(cell)}.json"


def _name(cell: Cell) -> str:
    return f"{cell.beam}-{cell.target_tokens}"
