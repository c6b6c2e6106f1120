"""Documents: their segments, and a way to write them with translations."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tf_transformer.documents.segments import Code, Item, Segment
from tf_transformer.errors import InputError
from tf_transformer.text.normalization import has_letters

_SPACED = re.compile(r"([ \t\r\n]*)(.*?)([ \t\r\n]*)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")

Escape = Callable[[str], str]


@dataclass(frozen=True)
class Options:
    """What a format needs to know.

    Attributes:
        source: the language of the texts, such as en or pt-BR; "": unknown.
        target: the language of the translations, or "".
        retranslate: whether units that have a translation are translated again.
        unpacked_bytes: largest size of the parts of a compressed document.
    """

    source: str = ""
    target: str = ""
    retranslate: bool = False
    unpacked_bytes: int = 2**29

    def require(self, source: str | None = "", target: str | None = "") -> None:
        """Raises an `InputError` if a document names another language than the model has."""
        for side, named, own in (("from", source, self.source), ("to", target, self.target)):
            one, other = ((x or "").replace("_", "-").split("-")[0].lower() for x in (named, own))
            if one and other and len(one) == len(other) and one != other:
                raise InputError(
                    f"it is translated {side} {named}, but this model translates {side} {own}. "
                    "Give another --run_dir, or correct the language in the file."
                )


class Document(NamedTuple):
    """A document that a format has read.

    Attributes:
        segments: the texts to translate, in order.
        write: makes the content of the translated document from the restored items of each
            segment. It is called once.
    """

    segments: Sequence[Segment]
    write: Callable[[Sequence[Sequence[Item]]], bytes]


def translated(
    document: Document, translate: Callable[[list[str]], Sequence[str]]
) -> tuple[bytes, int]:
    """The content of the translated document, and the number of segments that lost a tag.

    Args:
        document: what a format has read.
        translate: a function from texts to their translations, in order.
    """
    texts = texts_of(document)
    return with_translations(document, texts, translate(texts) if texts else [])


def texts_of(document: Document) -> list[str]:
    """The texts to translate: each line of a segment that has letters, without the space around it.

    Equal texts are listed once. All other lines stay as they are.
    """
    lines = (line.strip() for segment in document.segments for line in segment.text.split("\n"))
    return [line for line in dict.fromkeys(lines) if has_letters(_TAG.sub("", line))]


def with_translations(
    document: Document, texts: Sequence[str], translations: Sequence[str]
) -> tuple[bytes, int]:
    """The content of the translated document, and the number of segments that lost a tag.

    A text whose translation is empty stays as it is.

    Args:
        document: what a format has read.
        texts: the texts of `texts_of`.
        translations: their translations, in order.
    """
    known = dict(zip(texts, translations, strict=True))

    def line_of(line: str) -> str:
        text = line.strip()
        return line.replace(text, known.get(text) or text, 1) if text else line

    results = [
        segment.restored("\n".join(map(line_of, segment.text.split("\n"))))
        for segment in document.segments
    ]
    content = document.write([items for items, _ in results])
    return content, sum(not is_whole for _, is_whole in results)


class TextDocument:
    """Collects the segments of a text. Everything else stays character for character.

    The content of a code is a string, or a list of strings from `within`.

    Attributes:
        escape: writes the text of the next segments in the syntax of the document.
    """

    def __init__(self, escape: Escape = str):
        self.escape = escape
        self._parts: list[str | list[str]] = []
        self._items: list[Item] = []  # of the open segment
        self._source: list[str] = []
        self._places: list[tuple[list, int, Segment, Escape]] = []

    def add(self, item: Item, source: str = "") -> None:
        """Adds text or a code to the open segment, and what stands for it in the document."""
        self._items.append(item)
        self._source.append(source)

    def within(self, parts: list[str], read: Escape, escape: Escape) -> list[str]:
        """The parts of markup as the content of a code; every second part is a segment.

        `read` makes the text of such a part, and `escape` writes it.
        """
        for place in range(1, len(parts), 2):
            self._places.append((parts, place, Segment([read(parts[place])]), escape))
        return parts

    def stop(self, source: str | list[str] = "") -> None:
        """Ends the open segment, before a part that stays, or a list of `within`."""
        items, text = self._items, "".join(self._source)
        before, _, after = _SPACED.fullmatch(text).groups()  # type: ignore[union-attr]
        if items and isinstance(items[0], str):
            items[0], text = items[0].lstrip(" "), text[len(before) :]
            self._parts.append(before)
        has_end = text and isinstance(items[-1], str)
        if has_end:
            items[-1], text = items[-1].rstrip(" "), text.removesuffix(after)  # type: ignore[union-attr]
        segment = Segment(items)
        if segment.text or _has_parts(items):
            self._places.append((self._parts, len(self._parts), segment, self.escape))
        self._parts += [text, after if has_end else "", source]
        self._items, self._source = [], []

    def document(self) -> Document:
        """The document. A segment whose translation is its own text keeps its source."""
        self.stop()
        return Document([segment for _, _, segment, _ in self._places], self._write)

    def _write(self, translations: Sequence[Sequence[Item]]) -> bytes:
        changed = set[int]()  # the contents of codes
        for (parts, place, segment, escape), items in zip(self._places, translations, strict=True):
            contents = {id(item.content) for item in items if isinstance(item, Code)}
            if items != segment.items or contents & changed:
                parts[place] = written(items, escape)
                changed.add(id(parts))
        return "".join(map("".join, self._parts)).encode()


def _has_parts(items: Iterable[Item]) -> bool:
    return any(isinstance(item, Code) and isinstance(item.content, list) for item in items)


def written(items: Iterable[Item], escape: Escape) -> str:
    """Items as a string of a document; see `TextDocument`."""
    return "".join(escape(x) if isinstance(x, str) else "".join(x.content) for x in items)
