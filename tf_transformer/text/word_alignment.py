"""Word alignments: links between positions, and their lines in the Pharaoh format."""

import re
from collections.abc import Iterable
from typing import Literal

from tf_transformer.errors import InputError

Unit = Literal["words", "pieces"]
Link = tuple[int, int]  # positions in source and target, counted from 0
LINKS = "links"  # the name of the links beside the texts of an example, and in a batch
_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def to_line(links: Iterable[Link]) -> str:
    """Writes the links of a pair as a line of the Pharaoh format.

    Example:
        >>> to_line([(0, 0), (2, 1)])
        '0-0 2-1'
    """
    return " ".join(f"{source}-{target}" for source, target in links)


def from_line(line: str) -> list[Link]:
    """Reads a line of the Pharaoh format; an `InputError` for anything but links such as 0-0.

    Example:
        >>> from_line("0-0 2-1")
        [(0, 0), (2, 1)]
    """
    links = []
    for word in line.split():
        if not (match := _LINK.fullmatch(word)):
            raise InputError(f"expected links such as 0-0 1-2, got {word!r:.40}")
        links.append((int(match[1]), int(match[2])))
    return links
