"""Elements of XML and HTML: which tags of a text open and close them; `elements.py` on tensors."""

import re
from collections.abc import Sequence

from tf_transformer.text.kept_spans import ALONE, CLOSING, TAG, TAG_NAME
from tf_transformer.text.normalization import WHITE_SPACE

TOUCHING = f">{WHITE_SPACE}*<[A-Za-z/]"  # where two tags may touch each other


def is_well_formed(spans: Sequence[str]) -> bool:
    """Whether the tags among spans open and close as in XML.

    Example:
        >>> is_well_formed(["<b>", "{a}", "<br>", "</b>"]), is_well_formed(["</b>", "<b>"])
        (True, False)
    """
    return 2 * sum(place >= 0 for place in openings(spans)) == sum(map(is_paired, spans))


def openings(spans: Sequence[str]) -> list[int]:
    """For each span that closes an element, the index of the tag that opens it.

    Other spans, and tags that close nothing, have -1.

    Example:
        >>> openings(["<i>", "<b>", "</b>", "</b>"])
        [-1, -1, 1, -1]
    """
    result, level = [-1] * len(spans), 0
    last = dict[int, int]()  # the last tag of each level
    for place, span in enumerate(spans):
        if is_paired(span):
            level += not closes(span)
            before = spans[last[level]] if level in last else span
            if closes(span) and not closes(before) and _name(before) == _name(span):
                result[place] = last[level]
            last[level] = place
            level -= closes(span)
    return result


def is_paired(span: str) -> bool:
    """Whether a span is a tag that opens or closes an element with content."""
    return is_tag(span) and not re.fullmatch(ALONE, span, re.ASCII)


def is_tag(span: str) -> bool:
    """Whether a span is a tag."""
    return re.fullmatch(TAG, span, re.ASCII) is not None


def closes(span: str) -> bool:
    """Whether a span is a tag that closes an element."""
    return re.fullmatch(CLOSING, span) is not None


def _name(tag: str) -> str:
    return re.sub(TAG_NAME, r"\1", tag, flags=re.ASCII)
