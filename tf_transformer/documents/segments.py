"""Segments: the texts of a document that are translated, with their inline codes as tags."""

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple


class Code(NamedTuple):
    """Markup inside a text, such as a link or a line break.

    `open` and `close` with one key are a pair around words. `alone` is layout, which may leave the
    ends of a text, and so is `break`, which divides words like a space. `value` is part of the
    sentence, such as a placeholder.
    """

    kind: Literal["open", "close", "alone", "break", "value"]
    content: Any  # of the document: a string or an element
    key: object = None


Item = str | Code
_OF_CODES = re.compile("(</?[A-Za-z]+/?>)")  # tags that may stand for codes


class Segment:
    """A text whose inline codes are XML-like tags: `<a>` and `</a>` for a pair, `<b/>` for others.

    Short tags leave room for words, and their names do not occur in tags of the text. Spaces stand
    around the tag of a break. Layout at the ends, and pairs around the whole text, are no part of
    it.

    Attributes:
        items: text and codes of the document, in order.
        text: the text to translate; "" without words.

    Example:
        >>> segment = Segment(["Press ", Code("open", "[b]"), "OK", Code("close", "[/b]"), "."])
        >>> segment.text
        'Press <a>OK</a>.'
        >>> items, is_whole = segment.restored("Drücken Sie OK.")
        >>> [item if isinstance(item, str) else item.content for item in items], is_whole
        (['Drücken Sie OK.', '[b]', '[/b]'], False)
    """

    def __init__(self, items: Iterable[Item]):
        self.items = joined(items)
        self._before, inside, self._after = without_layout(self.items)
        pairs, closing = _pairs(inside), dict[int, str]()
        names = _unused_names("".join(item for item in inside if isinstance(item, str)))
        self._codes: dict[str, Code] = {}  # by tag
        self._closing: dict[str, str] = {}  # the closing tag of each opening tag
        self._added: dict[str, tuple[str, str]] = {}  # spaces around the tag of a break
        text = ""
        for place, item in enumerate(inside):
            if isinstance(item, str):
                text += item
                continue
            partner = pairs.get(place, place)
            if partner < place:
                tag = closing[partner]
            elif partner == place:
                tag = f"<{next(names)}/>"
            else:
                name = next(names)
                tag, closing[place] = f"<{name}>", f"</{name}>"
                self._closing[tag] = closing[place]
            self._codes[tag] = item
            if item.kind == "break":
                following = next(iter(inside[place + 1 : place + 2]), "")
                has_space = isinstance(following, str) and following.startswith(" ")
                before, after = " " * (not text.endswith(" ")), " " * (not has_space)
                self._added[tag] = before, after
                tag = f"{before}{tag}{after}"
            text += tag
        self.text = text

    def restored(self, translation: str) -> tuple[list[Item], bool]:
        """The translation with the codes of the document, and whether it has each tag.

        A missing code stands at the end. A repeated tag is left out.
        """
        missing, opened = dict(self._codes), dict[str, None]()  # closing tags of open pairs
        items = list(self._before)
        parts = _OF_CODES.split(translation)
        for place in range(1, len(parts), 2):
            before, after = self._added.get(parts[place].lower(), ("", ""))
            parts[place - 1] = parts[place - 1].removesuffix(before)
            parts[place + 1] = parts[place + 1].removeprefix(after)
        for part in parts:
            tag = part.lower()
            if tag not in self._codes:
                items.append(part)
            elif tag in opened:
                while tag in opened:  # pairs inside end before it
                    items.append(missing.pop(opened.popitem()[0]))
            elif tag in missing and not tag.startswith("</"):
                items.append(missing.pop(tag))
                opened |= {self._closing[tag]: None} if tag in self._closing else {}
        is_whole = not missing
        items += [missing.pop(tag) for tag in reversed(opened)]
        return joined([*items, *missing.values(), *self._after]), is_whole


def joined(items: Iterable[Item]) -> list[Item]:
    """The items with adjacent texts joined, and without empty texts."""
    result: list[Item] = []
    for item in items:
        if isinstance(item, str) and result and isinstance(last := result[-1], str):
            result[-1] = last + item
        elif item:
            result.append(item)
    return result


def _pairs(items: Sequence[Item]) -> dict[int, int]:
    """The place of the partner of each code of a pair. Pairs are nested; other codes have none."""
    pairs, opened = dict[int, int](), list[tuple[int, object]]()
    count = Counter[object]()  # of open codes, by key
    for place, item in enumerate(items):
        if not isinstance(item, Code):
            continue
        if item.kind == "open":
            opened.append((place, item.key))
            count[item.key] += 1
        elif item.kind == "close" and count[item.key]:
            while opened[-1][1] != item.key:
                count[opened.pop()[1]] -= 1
            partner, key = opened.pop()
            count[key] -= 1
            pairs |= {place: partner, partner: place}
    return pairs


def without_layout(items: Sequence[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """The items before, of and after the words: layout, and pairs around all words, are outside."""
    pairs, start, stop = _pairs(items), 0, len(items)
    words = [n for n, item in enumerate(items) if isinstance(item, str) and item.strip()]

    def is_layout(first: int, last: int) -> bool:
        return not any(isinstance(x, Code) and x.kind == "value" for x in items[first : last + 1])

    while words:
        first, last = pairs.get(start, start), pairs.get(stop - 1, stop - 1)
        if first == stop - 1 and first != start:
            start, stop = start + 1, stop - 1
        elif first < words[0] and is_layout(start, first):
            start = first + 1
        elif last > words[-1] and is_layout(last, stop - 1):
            stop = last
        else:
            return [*items[:start]], [*items[start:stop]], [*items[stop:]]
    return [*items], [], []


def _unused_names(text: str) -> Iterator[str]:
    """The names a to z, aa, ab, ... that start no tag of a text."""
    starts = re.findall("</?([a-z]{1,5})", text.lower())
    used = {name[:length] for name in starts for length in range(1, 6)}
    for length in itertools.count(1):
        for name in map("".join, itertools.product(string.ascii_lowercase, repeat=length)):
            if name not in used:
                yield name
