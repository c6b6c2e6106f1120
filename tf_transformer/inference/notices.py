"""Notices of predictions: what a prediction may have lost."""

from enum import StrEnum

from tf_transformer.text.faults import (
    has_foreign_script,
    has_loop,
    is_copy,
    is_out_of_proportion,
    numbers,
)
from tf_transformer.text.normalization import has_letters, is_blank
from tf_transformer.text.placeholders import placeholders
from tf_transformer.text.splitting import has_several_sentences


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
    LOOP = "loop"  # the translation repeats a phrase in a row, and the input does not
    UNTRANSLATED = "untranslated"  # the translation has the words of the input
    SCRIPT = "script"  # a word of the translation is in another script than the rest
    NUMBERS = "numbers"  # input and translation have other numbers above 12
    LENGTH_RATIO = "length_ratio"  # the translation is much longer or shorter than the input


def of_translation(source: str, translation: str, is_divided: bool = False) -> tuple[Notice, ...]:
    r"""The notices that a text and its translation show; a notice for the user, not a test.

    A text that was divided into its sentences may have several lines and sentences.

    Example:
        >>> [notice.value for notice in of_translation("Status\nTo: %s", "Status an: %")]
        ['several_lines', 'placeholders']
    """
    lines = [line for line in source.splitlines() if not is_blank(line)]
    holds = {
        Notice.SEVERAL_LINES: len(lines) > 1 and not is_divided,
        Notice.SEVERAL_SENTENCES: not is_divided and any(map(has_several_sentences, lines)),
        Notice.PLACEHOLDERS: placeholders(source) != placeholders(translation),
        Notice.EMPTY: not translation and has_letters(source),
        Notice.LOOP: has_loop(source, translation),
        Notice.UNTRANSLATED: is_copy(source, translation),
        Notice.SCRIPT: has_foreign_script(source, translation),
        Notice.NUMBERS: bool(translation) and numbers(source) != numbers(translation),
        Notice.LENGTH_RATIO: bool(translation) and is_out_of_proportion(source, translation),
    }
    return tuple(notice for notice, is_true in holds.items() if is_true)
