"""Divides a text into the parts that a model translates, and joins their translations."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tf_transformer.files.writing import one_line


class Divided(NamedTuple):
    """The parts of a text, and what stands around them: one string more than parts."""

    parts: Sequence[str]
    around: Sequence[str]

    def join(self, translations: Sequence[str]) -> str:
        """The text with translations in place of its parts."""
        pairs = itertools.zip_longest(self.around, translations, fillvalue="")
        return "".join(itertools.chain.from_iterable(pairs))


class Format(NamedTuple):
    """How texts are divided, and what stands in a text in place of a part and its translation."""

    divide: Callable[[str], Divided]
    finish: Callable[[str, str], str]


def lines_of(text: str) -> Divided:
    r"""The lines of a text, without the white space around them.

    Example:
        >>> lines_of("One.\n\n  Two.\n")
        Divided(parts=['One.', 'Two.'], around=['', '\n\n  ', '\n'])
    """
    parts, around = [], [""]
    for line in text.splitlines(keepends=True):
        if content := line.strip():
            start, _, end = line.partition(content)
            parts.append(content)
            around[-1] += start
            around.append(end)
        else:
            around[-1] += line
    return Divided(parts, around)


LINES = Format(lines_of, lambda part, translation: one_line(translation))
"""Plain text."""
