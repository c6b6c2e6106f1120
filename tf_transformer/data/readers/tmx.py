"""TMX: translation memories in XML."""

import re
from collections.abc import Mapping, Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Rows, content
from tf_transformer.data.readers.translation_units import Unit, UnitCollector, pairs_of, xml_lines

_INLINE = re.compile(rb"<(?!(?:tmx|header|body|tuv?|seg|prop|note|ude|map)\b)\w")


def read_tmx(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a translation memory. Each translation unit gives a pair of segments.

    `columns` names the two languages; by default, the data options do. `pairs_of` says which
    segments are read, which units are skipped, and what an `InputError` is. `inline_codes` says
    what becomes of inline codes. Only one unit is in memory.
    """
    languages = corpus.columns or (data.source_language, data.target_language)
    return Rows(
        (corpus.path,) * len(fields),
        lambda skipped: pairs_of(_Memory(corpus.path), languages, skipped),
        lambda: f"tmx {_content(corpus.path)} {languages}",
    )


def _content(path: str) -> str:
    """Identifies a memory. Earlier versions read memories with inline elements in another way."""
    has_codes = any(map(_INLINE.search, xml_lines(path)))
    return content(path, read=xml_lines) + " with codes" * has_codes


class _Memory(UnitCollector):
    def __init__(self, path: str):
        super().__init__(path)
        self._segments: list[tuple[str, str]] = []
        self._language = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "tu":
            self._segments = []
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif tag == "seg":
            self.start_text()
        elif self.is_in_text:
            self.start_code(tag, attributes)

    def end(self, tag: str) -> None:
        if tag == "tu":
            self.add(Unit(self._segments))
            self._segments = []
        elif self.is_in_text and tag == "seg":
            self._segments.append((self._language, self.end_text()))
        elif self.is_in_text:
            self.end_code(tag)
