"""The sentences our contenders translate, and the scores that show all their tokens were found.

A SavedModel gives strings, which do not tell how many tokens they were. Their scores do: a score
is a sum over the tokens, so one of fewer tokens is another score.
"""

import json
import pathlib
from collections.abc import Callable, Sequence

import numpy as np
from workload import Cell, Setting

# Other kernels round differently, and near ties then go the other way, which moves a score a
# little; three tokens too few move it by more than this.
_TOLERANCE = 0.05


def saved_model_path(setting: Setting, beam: int) -> pathlib.Path:
    """The SavedModel of a contender with a beam."""
    return setting.own / f"saved_model-{beam}"


def write_expected(
    setting: Setting, beam: int, sentences: Sequence[str], scores: Sequence[float]
) -> None:
    """Keeps what every call with this beam is compared with."""
    setting.own.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"sentences": list(sentences), "scores": list(scores)})
    _path(setting, beam).write_text(content, "utf-8")


def read_expected(
    setting: Setting, cell: Cell
) -> tuple[list[str], Callable[[Sequence[float]], None]]:
    """The sentences of a cell, and a function that refuses scores that are not theirs."""
    content = json.loads(_path(setting, cell.beam).read_text("utf-8"))
    scores = content["scores"][: cell.batch]
    return content["sentences"][: cell.batch], lambda found: check_scores(found, scores)


def check_scores(found: Sequence[float], expected: Sequence[float]) -> None:
    """Refuses scores of other translations than those whose tokens were counted.

    Raises:
        RuntimeError: when the numbers of scores differ, or a score by more than rounding.
    """
    same = len(found) == len(expected) and np.allclose(found, expected, rtol=_TOLERANCE, atol=0)
    if not same:
        raise RuntimeError(
            f"expected the scores {np.round(expected, 3).tolist()}, "
            f"got {np.round(found, 3).tolist()}: these are not the translations of full length."
        )


def _path(setting: Setting, beam: int) -> pathlib.Path:
    return setting.own / f"expected-{beam}.json"
