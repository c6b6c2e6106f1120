"""Terms inside of a text: a model reads a phrase and its translation beside each other.

A model that is trained with `data.augment.terms` learns to use such translations, in the form that
the sentence needs (Dinu et al. 2019, https://aclanthology.org/P19-1294).
"""

from typing import TypeVar

T = TypeVar("T")

MARKS = "[ | ]"  # short in any vocabulary, and rare in text with spaces on both sides
MARKED = r"\[ ([^\[|\]]*) \| [^\[|\]]* \]"
"""A term in a text; the group is its phrase."""


def marked(phrase: T, translation: T) -> tuple[str | T, ...]:
    """What a term consists of, as strings or string tensors to join.

    Example:
        >>> "".join(marked("station", "Haltestelle"))
        '[ station | Haltestelle ]'
    """
    return "[ ", phrase, " | ", translation, " ]"
