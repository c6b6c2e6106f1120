"""Translation units of XML files: collected from the events of a parser, and chosen by language."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.parsers import expat

from tf_transformer.data.readers.inline_codes import (
    INSIDE,
    SUBFLOW,
    in_place_of,
    start_of,
    without_marks,
)
from tf_transformer.data.readers.rows import Row
from tf_transformer.errors import InputError
from tf_transformer.files.reading import lines_of, read_xml


class Unit(NamedTuple):
    """A translation unit."""

    segments: Sequence[tuple[str, str]]  # language and text
    fault: str = ""  # why it is no pair, such as "untranslated"


class UnitCollector:
    """Collects translation units from the events of an XML parser; a subclass for each format.

    Expat reads no external entities, and this class refuses declarations of internal entities. So
    no file can expand to a larger text.
    """

    def __init__(self, path: str):
        self.path = path
        self.elements: list[tuple[str, int]] = []  # open elements, and the lines where they start
        self._ended: list[tuple[int, Unit]] = []
        self._texts: list[list[str]] = []  # of the open segment and of the open codes inside it
        self.parser = expat.ParserCreate("utf-8")  # `read_xml` has converted the text to UTF-8
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Reads the start of an element, which is the last one in `elements`."""
        raise NotImplementedError

    def end(self, tag: str) -> None:
        """Reads the end of an element."""
        raise NotImplementedError

    def add(self, unit: Unit) -> None:
        """Adds a unit that ends here."""
        self._ended.append((self.parser.CurrentLineNumber, unit))

    def ended(self) -> list[tuple[int, Unit]]:
        """Returns the units that have ended since the last call."""
        units, self._ended = self._ended, []
        return units

    def place(self) -> str:
        """Names the innermost open element, for errors."""
        return " in <{}> of line {:,}".format(*self.elements[-1]) if self.elements else ""

    @property
    def is_in_text(self) -> bool:
        """Whether the text of a segment is open."""
        return bool(self._texts)

    def start_text(self) -> None:
        """Starts the text of a segment."""
        self._texts = [[]]

    def end_text(self) -> str:
        """Ends the text of a segment, and returns it."""
        text = self.text_from(0)
        self._texts = []
        return text

    def position(self) -> int:
        """The end of the open text so far, for `text_from`."""
        return len(self._texts[0])

    def text_from(self, position: int) -> str:
        """Returns the open text from a position on."""
        return without_marks("".join(self._texts[0][position:]))

    def start_code(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Starts an element inside a text, as TMX has them."""
        if tag in INSIDE:
            self._texts.append([start_of(tag, attributes)])
        else:
            self.add_text(in_place_of(tag, f"<{tag}>"))

    def end_code(self, tag: str, default: str = "") -> None:
        """Ends an element inside a text. `default` is the code of an element without content."""
        if tag in INSIDE:
            code = "".join(self._texts.pop()) or default
            self.add_text("" if tag == SUBFLOW else in_place_of(tag, code))
        else:
            self.add_text(in_place_of(tag, f"</{tag}>"))

    def add_text(self, text: str) -> None:
        """Adds to the open text or code."""
        self._texts[-1].append(text)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements.append((tag, self.parser.CurrentLineNumber))
        self.start(tag, attributes)

    def _end(self, tag: str) -> None:
        self.end(tag)
        self.elements.pop()

    def _data(self, text: str) -> None:
        if self._texts:
            self.add_text(text)

    def _refuse(self, *_: object) -> None:
        raise InputError(
            f"line {self.parser.CurrentLineNumber:,} of {self.path} declares or uses an entity. "
            "Entities are not read. Remove the declaration, and write the text of the entity in "
            "its place."
        )


def xml_lines(path: str) -> Iterator[bytes]:
    """Reads the lines of an XML file in UTF-8, from any encoding that it names."""
    return lines_of(read_xml(path), path)


def pairs_of(
    collector: UnitCollector, languages: Sequence[str], skipped: Counter[str]
) -> Iterator[Row]:
    """Reads the pairs of segments in two languages, each with the line where its unit ends.

    The language `en` matches `en`, otherwise `en-US` or another variety, in upper or lower case
    (RFC 4647, basic filtering). Units without one of the languages, and units with a fault, are
    skipped and counted. If a unit has several segments in a language, the first one with text is
    read; the others are counted.

    An XML file that is not well-formed, that declares entities, or in which no unit has both
    languages, is an `InputError`.
    """
    present: dict[str, None] = {}
    is_empty = True
    for number, unit in _units(collector):
        present.update((tag or "unnamed", None) for tag, _ in unit.segments)
        found = [places_of(language, [tag for tag, _ in unit.segments]) for language in languages]
        if not all(found):
            skipped[f"without {' or '.join(languages)}"] += 1
            continue
        is_empty = False
        if unit.fault:
            skipped[unit.fault] += 1
            continue
        used = [  # the first segment that is not blank, or the first one
            next((place for place in places if unit.segments[place][1].strip()), places[0])
            for places in found
        ]
        if unused := set().union(*found).difference(used):
            skipped[f"further segments in {' or '.join(languages)}"] += len(unused)
        yield number, tuple(unit.segments[place][1].encode() for place in used)
    if is_empty:
        raise InputError(
            f"{collector.path} has no translation unit in {' and '.join(languages)}; its "
            f"languages are {', '.join(present) or 'none'}. Set data.source_language and "
            "data.target_language, or give both languages as columns of the corpus."
        )


def places_of(language: str, tags: Sequence[str]) -> list[int]:
    """Finds the places of a language in tags. Varieties of the language come last.

    Example:
        >>> places_of("en", ["en-US", "de", "EN"])
        [2, 0]
    """
    wanted, *names = (name.lower().replace("_", "-") for name in (language, *tags))
    exact = [place for place, name in enumerate(names) if name == wanted]
    return exact + [place for place, name in enumerate(names) if name.startswith(f"{wanted}-")]


def _units(collector: UnitCollector) -> Iterator[tuple[int, Unit]]:
    """Reads translation units, each with the number of the line where it ends."""
    try:
        for piece in read_xml(collector.path):
            collector.parser.Parse(piece)
            yield from collector.ended()
        collector.parser.Parse(b"", True)
        yield from collector.ended()
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        advice = " If the file is not in UTF-8, its first line must name the encoding."
        raise InputError(
            f"line {error.lineno:,} of {collector.path} is not well-formed XML: {what}"
            f"{collector.place()}." + advice * (what == expat.errors.XML_ERROR_INVALID_TOKEN)
        ) from error
