"""WMT's XML: documents with their references, as the shared tasks publish test sets."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.data.readers.translation_units import Unit, UnitCollector, pairs_of, xml_lines
from tf_transformer.errors import InputError


def read_wmt_xml(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a test set of WMT. Each segment of a source gives a pair with that of its reference.

    `columns` names the two languages; by default, the data options do. A column may also name the
    translator of the reference, as in de:A or de:refA. By default, the first reference of each
    document in the language counts. Documents and segments keep their order. Segments without the
    reference are skipped and counted; `pairs_of` has the other rules. Outputs of systems, `<hyp>`,
    are not read. Only one document is in memory.

    A pass raises an `InputError` as `pairs_of` does, and if no document has the reference.
    """
    columns = corpus.columns or (data.source_language, data.target_language)
    languages = [column.partition(":")[0] for column in columns]
    reference = next(filter(None, (column.partition(":")[2] for column in columns)), "")

    def start(skipped: Counter[str]) -> Iterator[Row]:
        documents = _Documents(corpus.path, reference)
        yield from pairs_of(documents, languages, skipped)
        if not documents.has_reference:
            raise InputError(
                f"{corpus.path} has no reference {reference}; its references are "
                f"{', '.join(documents.translators) or 'none'}. Name one of them in the columns of "
                f"the corpus, like [{languages[0]}, {languages[1]}:A]."
            )

    return Rows(
        (corpus.path,) * len(fields),
        start,
        lambda: f"wmt {content(corpus.path, read=xml_lines)} {columns}",
    )


def without_references(corpus: Corpus) -> Corpus:
    """The corpus with columns that only name languages."""
    return replace(corpus, columns=tuple(name.partition(":")[0] for name in corpus.columns))


class _Documents(UnitCollector):
    def __init__(self, path: str, reference: str):
        super().__init__(path)
        self.has_reference = not reference
        self.translators: dict[str, None] = {}  # in their order
        self._reference = reference
        self._source: tuple[str, dict[str, str]] = "", {}  # language, and texts by segment
        self._references: dict[str, dict[str, str]] = {}  # texts by segment, by language
        self._others: dict[str, dict[str, str]] = {}  # references that do not count
        self._texts_by_segment: dict[str, str] | None = None  # of the open text
        self._segment = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        language = attributes.get("lang", "")
        if self.is_in_text:
            self.start_code(tag, attributes)
        elif tag == "doc":
            self._source, self._references, self._others = ("", {}), {}, {}
        elif tag == "src":
            self._texts_by_segment = {}
            self._source = language, self._texts_by_segment
        elif tag == "ref":
            self._texts_by_segment = {}
            is_wanted = self._is_wanted(attributes.get("translator", ""))
            references = self._references if is_wanted else self._others
            references.setdefault(language, self._texts_by_segment)
        elif tag == "hyp":
            self._texts_by_segment = None
        elif tag == "seg" and self._texts_by_segment is not None:
            self._segment = attributes.get("id") or str(len(self._texts_by_segment) + 1)
            if self._segment in self._texts_by_segment:
                raise InputError(
                    f"line {self.parser.CurrentLineNumber:,} of {self.path} has a second segment "
                    f"{self._segment} of one text. Give each segment of a document its own id."
                )
            self.start_text()

    def end(self, tag: str) -> None:
        if self.is_in_text and tag == "seg":
            self._texts_by_segment[self._segment] = self.end_text()  # type: ignore[index]
        elif self.is_in_text:
            self.end_code(tag)
        elif tag == "doc":
            self._end_document()

    def _is_wanted(self, translator: str) -> bool:
        self.translators.setdefault(translator or "unnamed")
        is_wanted = self._reference in ("", translator, f"ref{translator}")
        self.has_reference = self.has_reference or is_wanted
        return is_wanted

    def _end_document(self) -> None:
        language, texts = self._source
        references = self._references or self._others
        is_other = bool(self._others) and not self._references
        fault = f"without reference {self._reference}" if is_other else ""
        for segment, text in texts.items():
            targets = [(name, t[segment]) for name, t in references.items() if segment in t]
            self.add(Unit([(language, text), *targets], fault))
