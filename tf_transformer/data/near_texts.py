"""Texts that are nearly equal: MinHash with locality-sensitive hashing (Broder 1997), by rensa.

Two texts are near if they share 70 % of their sequences of four characters: the Jaccard index,
without regard to case, punctuation and spaces. Its estimate has a standard deviation of 6 %. rensa
is in the extra `inspect`.
"""

import re
from typing import Any

from tf_transformer.errors import InputError

THRESHOLD = 0.7  # least Jaccard index
_LENGTH = 4  # characters of a sequence
_HASHES, _BANDS = 64, 16  # a text at the threshold is a candidate with a probability of 98.8 %
_SEED = 1
_BETWEEN = re.compile(r"[\W_]+")


class NearTexts:
    """An index of texts, by number, that finds near ones."""

    def __init__(self) -> None:
        self._rensa = _rensa()
        self._index = self._rensa.RMinHashLSH(THRESHOLD, _HASHES, _BANDS)
        self._sketches: list[Any] = []

    def __len__(self) -> int:
        return len(self._sketches)

    def sketch(self, text: str) -> Any:
        """The MinHash of a text. Texts with one sketch may be looked up in several indexes."""
        letters = _BETWEEN.sub(" ", text.casefold()).strip() or text
        count = max(1, len(letters) - _LENGTH + 1)
        sketch = self._rensa.RMinHash(_HASHES, _SEED)
        sketch.update([letters[i : i + _LENGTH] for i in range(count)])
        return sketch

    def add(self, sketch: Any) -> None:
        """Adds a text, whose number is the count of texts before it."""
        self._index.insert(len(self._sketches), sketch)
        self._sketches.append(sketch)

    def find(self, sketch: Any) -> int | None:
        """The number of the first added text that is near; None without one."""
        candidates = sorted(self._index.query(sketch))
        return next((n for n in candidates if self._is_near(sketch, n)), None)

    def find_all(self, sketch: Any) -> list[int]:
        """The numbers of all added texts that are near."""
        return [n for n in sorted(self._index.query(sketch)) if self._is_near(sketch, n)]

    def _is_near(self, sketch: Any, number: int) -> bool:
        return self._sketches[number].jaccard(sketch) >= THRESHOLD


def is_available() -> bool:
    """Whether rensa is installed."""
    try:
        return bool(_rensa())
    except InputError:
        return False


def _rensa() -> Any:
    try:
        import rensa
    except ImportError as error:
        raise InputError(
            "near texts are found by rensa, which is not installed: pip install "
            "'tf_transformer[inspect]'."
        ) from error
    return rensa
