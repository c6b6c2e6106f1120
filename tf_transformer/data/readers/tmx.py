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
    """The pairs of segments in two languages, one for each translation unit.

    The languages are `columns`, by default those of the data options. `en` means `en`, else
    `en-US` or another `en`, in any case of letters (RFC 4647, basic filtering). Units without one
    of the languages are skipped and counted. Inline elements with codes are dropped; a newline
    becomes a space. Memory holds one unit.

    A pass raises an `InputError` that names file and line when the file is not XML in UTF-8 or
    declares entities; and one that names the file when no unit has both languages.
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
    """The segment in a language, or else in a variety of it; None if there is none."""
    wanted = _normalized(language)
    by_tag = {_normalized(tag): text for tag, text in segments.items()}
    varieties = (text for tag, text in by_tag.items() if tag.startswith(f"{wanted}-"))
    return by_tag.get(wanted, next(varieties, None))


def _normalized(tag: str) -> str:
    return tag.lower().replace("_", "-")


def _units(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The line where each translation unit ends, and its segments by language."""
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

    Expat reads no external entities, and declarations of internal ones are refused, so no file
    expands to a larger text.
    """

    def __init__(self, path: str):
        self._path = path
        self._ended: list[tuple[int, dict[str, str]]] = []
        self._segments: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None  # of the segment that is open
        self._codes = 0  # elements with codes that are open
        self.parser = expat.ParserCreate("utf-8")  # whatever its declaration says
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse

    def ended(self) -> list[tuple[int, dict[str, str]]]:
        """The units that have ended since the last call."""
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
            f"line {self.parser.CurrentLineNumber:,} of {self._path} declares or uses an entity, "
            "which is not read. Remove it, with its declaration; write its text in its place."
        )
