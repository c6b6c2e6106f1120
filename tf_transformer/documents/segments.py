"""Segments: the texts of a document that are translated, with their inline codes as tags."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple


class Code(NamedTuple):
    """Markup inside a text, such as a link or a line break.

    `open` and `close` with one key are a pair around words. `alone` is layout, which may leave the
    ends of a text. `value` is part of the sentence, such as a placeholder.
    """

    kind: Literal["open", "close", "alone", "value"]
    content: Any  # of the document: a string or an element
    key: object = None


Item = str | Code


class Segment:
    """A text whose inline codes are XML-like tags: `<g id="1">` and `</g>`, or `<x id="2"/>`.

    Layout at the ends, and pairs around the whole text, are no part of it. If the text itself has
    such tags, the names of the tags get more letters.

    Attributes:
        items: text and codes of the document, in order.
        text: the text to translate; "" without words.

    Example:
        >>> segment = Segment(["Press ", Code("open", "<b>"), "OK", Code("close", "</b>"), "."])
        >>> segment.text
        'Press <g id="1">OK</g>.'
        >>> items, is_whole = segment.restored("Drücken Sie OK.")
        >>> [item if isinstance(item, str) else item.content for item in items], is_whole
        (['Drücken Sie OK.', '<b>', '</b>'], False)
    """

    def __init__(self, items: Iterable[Item]):
        self.items = joined(items)
        self._before, inside, self._after = without_layout(self.items)
        pairs = _pairs(inside)
        plain = "".join(item for item in self.items if isinstance(item, str))
        pair, alone = (_unused(name, plain) for name in "gx")
        self._closing = f"</{pair}>"
        self._tag = re.compile(rf'(<{pair} id="\d+">|</{pair}>|<{alone} id="\d+"/>)')
        self._codes: dict[str, Code] = {}  # by tag; a closing tag stands behind its opening tag
        self.text, numbers = "", dict[int, int]()
        for place, item in enumerate(inside):
            if isinstance(item, str):
                self.text += item
                continue
            partner = pairs.get(place, place)
            number = numbers.setdefault(min(place, partner), len(numbers) + 1)
            tag = f'<{alone} id="{number}"/>' if place == partner else f'<{pair} id="{number}">'
            self._codes[tag + self._closing if partner < place else tag] = item
            self.text += self._closing if partner < place else tag

    def restored(self, translation: str) -> tuple[list[Item], bool]:
        """The translation with the codes of the document, and whether it has each tag in order.

        A missing code stands at the end. A repeated tag is left out.
        """
        missing, opened = dict(self._codes), list[str]()
        items = list(self._before)
        for part in self._tag.split(translation):
            if part == self._closing and opened:
                items.append(missing.pop(opened.pop() + part))
            elif part in missing:
                items.append(missing.pop(part))
                opened += [part] if part + self._closing in missing else []
            elif not self._tag.fullmatch(part):
                items.append(part)
        is_whole = not missing
        items += [missing.pop(tag + self._closing) for tag in reversed(opened)]
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
    for place, item in enumerate(items):
        if not isinstance(item, Code):
            continue
        if item.kind == "open":
            opened.append((place, item.key))
        elif item.kind == "close" and item.key in [key for _, key in opened]:
            while opened[-1][1] != item.key:
                opened.pop()
            partner, _ = opened.pop()
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


def _unused(name: str, text: str) -> str:
    """A name of a tag that does not occur in a text."""
    while f"<{name}" in text or f"</{name}" in text:
        name += name[0]
    return name
