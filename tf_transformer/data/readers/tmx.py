"""TMX: translation memories in XML."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from xml.parsers import expat

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Row, Rows, as_line, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_plain

_CODES = {"bpt", "ept", "it", "ph", "ut"}  # elements that hold codes of a document, not its text


def read_tmx(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a translation memory. Each translation unit gives a pair of segments.

    `columns` names the two languages; by default, the data options do. The language `en` matches
    `en`, otherwise `en-US` or another variety, in upper or lower case (RFC 4647, basic filtering).
    Units without one of the languages are skipped and counted. Inline elements with codes are
    dropped. A newline becomes a space. Only one unit is in memory.

    A pass raises an `InputError` if the file is not XML in UTF-8, if it declares entities, or if no
    unit has both languages.
    """
    languages = corpus.columns or (data.source_language, data.target_language)

    def start(skipped: Counter[str]) -> Iterator[Row]:
        present: dict[str, None] = {}
        is_empty = True
        for number, segments in _units(corpus.path):
            present.update(dict.fromkeys(segments))
            texts = [_in_language(segments, language) for language in languages]
            row = tuple(as_line(text) for text in texts if text is not None)
            if len(row) == len(languages):
                is_empty = False
                yield number, row
            else:
                skipped[f"without {' or '.join(languages)}"] += 1
        if is_empty:
            raise InputError(
                f"{corpus.path} has no translation unit in {' and '.join(languages)}; its "
                f"languages are {', '.join(present) or 'none'}. Set data.source_language and "
                "data.target_language, or give both languages as columns of the corpus."
            )

    return Rows(
        (corpus.path,) * len(fields),
        start,
        lambda: f"tmx {content(corpus.path)} {languages}",
    )


def _in_language(segments: Mapping[str, str], language: str) -> str | None:
    """Finds the segment in a language, otherwise in a variety of the language, otherwise None."""
    wanted = _normalized(language)
    by_tag = {_normalized(tag): text for tag, text in segments.items()}
    varieties = (text for tag, text in by_tag.items() if tag.startswith(f"{wanted}-"))
    return by_tag.get(wanted, next(varieties, None))


def _normalized(tag: str) -> str:
    return tag.lower().replace("_", "-")


def _units(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Reads translation units: the line where each unit ends, and its segments by language."""
    units = _Units(path)
    try:
        for piece in read_plain(path):
            units.parser.Parse(piece)
            yield from units.ended()
        units.parser.Parse(b"", True)
        yield from units.ended()
    except expat.ExpatError as error:
        raise InputError(
            f"line {error.lineno:,} of {path} is not XML in UTF-8: {expat.ErrorString(error.code)}."
        ) from error


class _Units:
    """Collects translation units from the events of an XML parser.

    Expat reads no external entities, and this class refuses declarations of internal entities. So
    no file can expand to a larger text.
    """

    def __init__(self, path: str):
        self._path = path
        self._ended: list[tuple[int, dict[str, str]]] = []
        self._segments: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None  # text of the open segment
        self._codes = 0  # number of open elements with codes
        self.parser = expat.ParserCreate("utf-8")  # ignores the encoding that the file declares
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse

    def ended(self) -> list[tuple[int, dict[str, str]]]:
        """Returns the units that have ended since the last call."""
        units, self._ended = self._ended, []
        return units

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._segments = {}
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif tag == "seg":
            self._text, self._codes = [], 0
        self._codes += tag in _CODES

    def _end(self, tag: str) -> None:
        if tag == "seg" and self._text is not None:
            self._segments.setdefault(self._language, "".join(self._text))
            self._text = None
        elif tag == "tu":
            self._ended.append((self.parser.CurrentLineNumber, self._segments))
        self._codes -= tag in _CODES

    def _data(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _refuse(self, *_: object) -> None:
        raise InputError(
            f"line {self.parser.CurrentLineNumber:,} of {self._path} declares or uses an entity. "
            "Entities are not read. Remove the declaration, and write the text of the entity in "
            "its place."
        )
