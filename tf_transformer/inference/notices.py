"""Notices of predictions: what a prediction may have lost."""

from collections.abc import Iterable
from enum import StrEnum

WARNINGS, UNSEEN_WORDS = "warnings", "unseen_words"  # the names of outputs of signatures


class Notice(StrEnum):
    """What a prediction may have lost, or why it may be bad.

    Example:
        >>> Notice.SEVERAL_LINES == "several_lines"
        True
    """

    CUT = "cut"  # the input was longer than `max_source_length`, and its rest was not read
    LENGTH_LIMIT = "length_limit"  # the best prediction for the input reached its length limit
    # The input has more tokens than any line of the training text: `trained_source_length`.
    LONG_INPUT = "long_input"
    SEVERAL_LINES = "several_lines"  # the input has several lines, which the model reads as one
    SEVERAL_SENTENCES = "several_sentences"  # the input has several sentences
    PLACEHOLDERS = "placeholders"  # input and translation have other ones, such as %s or {name}
    EMPTY = "empty"  # the input has letters, and its translation is empty
    SCRIPT = "script"  # a word of the translation is in another script than the rest
    NUMBERS = "numbers"  # input and translation have other numbers above 12
    LOOP = "loop"  # the translation repeats a phrase in a row, and the input does not
    UNTRANSLATED = "untranslated"  # the translation has the words of the input
    LENGTH_RATIO = "length_ratio"  # the translation is much longer or shorter than the input
    # The input has words that the training text does not have: `Prediction.unseen_words`.
    UNSEEN = "unseen"


def in_order(notices: Iterable[str]) -> tuple[Notice, ...]:
    """Different notices, in the order of `Notice`.

    Example:
        >>> [notice.value for notice in in_order(["loop", "cut", "loop"])]
        ['cut', 'loop']
    """
    held = set(notices)
    return tuple(notice for notice in Notice if notice in held)
