"""TMX: translation memories in XML."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.parsers import expat

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.inline_codes import (
    INSIDE,
    SUBFLOW,
    in_place_of,
    start_of,
    without_marks,
)
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import lines_of, read_xml

Unit = list[tuple[str, str]]
"""A translation unit: language and text of each segment."""

_INLINE = re.compile(rb"<(?!(?:tmx|header|body|tuv?|seg|prop|note|ude|map)\b)\w")


def read_tmx(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a translation memory. Each translation unit gives a pair of segments.

    `columns` names the two languages; by default, the data options do. The language `en` matches
    `en`, otherwise `en-US` or another variety, in upper or lower case (RFC 4647, basic filtering).
    Units without one of the languages are skipped and counted. If a unit has several segments in a
    language, the first one with text is read; the others are counted. `inline_codes` says what
    becomes of inline codes. Only one unit is in memory.

    A pass raises an `InputError` if the file is not well-formed XML, if it declares entities, or if
    no unit has both languages.
    """
    languages = corpus.columns or (data.source_language, data.target_language)

    def start(skipped: Counter[str]) -> Iterator[Row]:
        present: dict[str, None] = {}
        is_empty = True
        for number, unit in _units(corpus.path):
            present.update((tag or "unnamed", None) for tag, _ in unit)
            found = [_in_language(unit, language) for language in languages]
            if not all(found):
                skipped[f"without {' or '.join(languages)}"] += 1
                continue
            is_empty = False
            used = [  # the first segment that is not blank, or the first one
                next((place for place in places if unit[place][1].strip()), places[0])
                for places in found
            ]
            if unused := set().union(*found).difference(used):
                skipped[f"further segments in {' or '.join(languages)}"] += len(unused)
            yield number, tuple(unit[place][1].encode() for place in used)
        if is_empty:
            raise InputError(
                f"{corpus.path} has no translation unit in {' and '.join(languages)}; its "
                f"languages are {', '.join(present) or 'none'}. Set data.source_language and "
                "data.target_language, or give both languages as columns of the corpus."
            )

    return Rows(
        (corpus.path,) * len(fields), start, lambda: f"tmx {_content(corpus.path)} {languages}"
    )


def _lines(path: str) -> Iterator[bytes]:
    return lines_of(read_xml(path), path)


def _content(path: str) -> str:
    """Identifies a memory. Earlier versions read memories with inline elements in another way."""
    has_codes = any(map(_INLINE.search, _lines(path)))
    return content(path, read=_lines) + " with codes" * has_codes


def _in_language(unit: Unit, language: str) -> list[int]:
    """Finds the places of segments in a language. Segments in a variety of it come last."""
    names = [language, *(tag for tag, _ in unit)]
    wanted, *tags = (name.lower().replace("_", "-") for name in names)
    exact = [place for place, tag in enumerate(tags) if tag == wanted]
    return exact + [place for place, tag in enumerate(tags) if tag.startswith(f"{wanted}-")]


def _units(path: str) -> Iterator[tuple[int, Unit]]:
    """Reads translation units, each with the number of the line where it ends."""
    units = _Units(path)
    try:
        for piece in read_xml(path):
            units.parser.Parse(piece)
            yield from units.ended()
        units.parser.Parse(b"", True)
        yield from units.ended()
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        advice = " If the file is not in UTF-8, its first line must name the encoding."
        raise InputError(
            f"line {error.lineno:,} of {path} is not well-formed XML: {what}{units.place()}."
            + advice * (what == expat.errors.XML_ERROR_INVALID_TOKEN)
        ) from error


class _Units:
    """Collects translation units from the events of an XML parser.

    Expat reads no external entities, and this class refuses declarations of internal entities. So
    no file can expand to a larger text.
    """

    def __init__(self, path: str):
        self._path = path
        self._ended: list[tuple[int, Unit]] = []
        self._unit: Unit = []
        self._language = ""
        self._open: list[tuple[str, int]] = []  # open elements, and the lines where they start
        self._texts: list[list[str]] = []  # of the open segment and of the open codes inside it
        self.parser = expat.ParserCreate("utf-8")  # `read_xml` has converted the text to UTF-8
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse

    def ended(self) -> list[tuple[int, Unit]]:
        """Returns the units that have ended since the last call."""
        units, self._ended = self._ended, []
        return units

    def place(self) -> str:
        """Names the innermost open element, for errors."""
        return " in <{}> of line {:,}".format(*self._open[-1]) if self._open else ""

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append((tag, self.parser.CurrentLineNumber))
        if tag == "tu":
            self._unit = []
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif tag == "seg":
            self._texts = [[]]
        elif self._texts and tag in INSIDE:
            self._texts.append([start_of(tag, attributes)])
        elif self._texts:
            self._texts[-1].append(in_place_of(tag, f"<{tag}>"))

    def _end(self, tag: str) -> None:
        self._open.pop()
        if tag == "tu":
            self._ended.append((self.parser.CurrentLineNumber, self._unit))
            self._unit = []
        elif self._texts and tag == "seg":
            self._unit.append((self._language, without_marks("".join(self._texts[0]))))
            self._texts = []
        elif self._texts and tag in INSIDE:
            code = "".join(self._texts.pop())
            self._texts[-1].append("" if tag == SUBFLOW else in_place_of(tag, code))
        elif self._texts:
            self._texts[-1].append(in_place_of(tag, f"</{tag}>"))

    def _data(self, text: str) -> None:
        if self._texts:
            self._texts[-1].append(text)

    def _refuse(self, *_: object) -> None:
        raise InputError(
            f"line {self.parser.CurrentLineNumber:,} of {self._path} declares or uses an entity. "
            "Entities are not read. Remove the declaration, and write the text of the entity in "
            "its place."
        )
