"""The tag of a target language at the start of a text, such as >>por<<.

A tag is not text: it has an id of its own. White space and invisible characters before it are
dropped, as at the start of each text.
"""

import re
import unicodedata
from collections.abc import Container

TAG = re.compile(r">>[^<>\s]+<<")
BLANK = ("Zs", "Zl", "Zp", "Cc", "Cf")  # Unicode's categories
# A tag with blanks in it, or a tag without its end. `>>> a` and `>> a` are text.
_BROKEN = re.compile(r">>[^<>]+<<|>>[^\W\d_]")


def split_tag(text: str, tags: Container[str]) -> tuple[str, str]:
    r"""Divides a text into its tag and the text after it, without white space at its start.

    The rest is "" if only blanks follow. Without one of `tags`, the tags of a model, the result is
    "" and the text as it is.

    Example:
        >>> split_tag("\n>>por<< a house", {">>por<<"})
        ('>>por<<', 'a house')
        >>> split_tag(">>eng<< a house", {">>por<<"})
        ('', '>>eng<< a house')
    """
    found = TAG.match(text, _start(text))
    if found is None or found[0] not in tags:
        return "", text
    rest = text[found.end() :]
    return found[0], rest.lstrip() if _start(rest) < len(rest) else ""


def wrong_tag(text: str, tags: Container[str]) -> str | None:
    """What stands at the start of a text in place of a tag: an unknown tag, or a part of one.

    None for a text with one of `tags`, the tags of a model, or without a tag.

    Example:
        >>> wrong_tag(">>eng<< a house", {">>por<<"}), wrong_tag(">>por a house", {">>por<<"})
        ('>>eng<<', '>>por a house')
    """
    start = _start(text)
    found = TAG.match(text, start)
    if found is not None:
        return None if found[0] in tags else found[0]
    if (broken := _BROKEN.match(text, start)) is None:
        return None
    return broken[0] if broken[0].endswith("<<") else text[start : start + 20]


def _start(text: str) -> int:
    """The place of the first character that is not blank; the length of a text of blanks."""
    categories = enumerate(map(unicodedata.category, text))
    return next((place for place, category in categories if category not in BLANK), len(text))
