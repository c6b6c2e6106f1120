"""Notices of predictions: what a prediction may have lost."""

from enum import StrEnum

from tf_transformer.text.normalization import has_letters, is_blank
from tf_transformer.text.placeholders import placeholders
from tf_transformer.text.sentences import has_several_sentences


class Notice(StrEnum):
    """What a prediction may have lost, or why it may be bad.

    Attributes:
        CUT: the input was longer than `max_source_length`, and its rest was not read.
        LENGTH_LIMIT: the best prediction for the input reached its length limit.
        LONG_INPUT: the input has more tokens than any line of the training text; see
            `DecodeConfig.trained_source_length`.
        SEVERAL_LINES: the input has several lines, which the model reads as one.
        SEVERAL_SENTENCES: the input has several sentences.
        PLACEHOLDERS: input and translation have other placeholders, such as %s or {name}.
        EMPTY: the input has letters, and its translation is empty.

    Example:
        >>> Notice.SEVERAL_LINES == "several_lines"
        True
    """

    CUT = "cut"
    LENGTH_LIMIT = "length_limit"
    LONG_INPUT = "long_input"
    SEVERAL_LINES = "several_lines"
    SEVERAL_SENTENCES = "several_sentences"
    PLACEHOLDERS = "placeholders"
    EMPTY = "empty"


def of_translation(source: str, translation: str) -> tuple[Notice, ...]:
    r"""The notices that a text and its translation show; a notice for the user, not a test.

    Example:
        >>> [notice.value for notice in of_translation("Status\nTo: %s", "Status an: %")]
        ['several_lines', 'placeholders']
    """
    lines = [line for line in source.splitlines() if not is_blank(line)]
    holds = {
        Notice.SEVERAL_LINES: len(lines) > 1,
        Notice.SEVERAL_SENTENCES: any(map(has_several_sentences, lines)),
        Notice.PLACEHOLDERS: placeholders(source) != placeholders(translation),
        Notice.EMPTY: not translation and has_letters(source),
    }
    return tuple(notice for notice, is_true in holds.items() if is_true)
