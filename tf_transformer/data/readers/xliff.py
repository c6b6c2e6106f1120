"""XLIFF 1.2 and 2.0: texts with their translations, as translators' tools exchange them."""

from collections.abc import Mapping, Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.inline_codes import INSIDE, in_place_of
from tf_transformer.data.readers.rows import Rows, content
from tf_transformer.data.readers.translation_units import Unit, UnitCollector, pairs_of, xml_lines
from tf_transformer.errors import InputError

_UNITS = {"trans-unit", "segment"}  # of 1.2 and of 2.0
_SIDES = {"source": ("source-language", "srcLang"), "target": ("target-language", "trgLang")}
_HEADER = "x-gettext-domain-header"  # restype of the header of a PO file, as po2xliff writes it
_AROUND = {"g", "pc", "mrk"}  # codes around words


def read_xliff(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens an XLIFF file. Each `<trans-unit>` of 1.2, and each `<segment>` of 2.0, gives a pair.

    A unit of 1.2 that is divided gives a pair for each `<mrk mtype="seg">` of `<seg-source>`, with
    the one in `<target>` that has the same `mid`. It gives one pair if the target has others.

    `columns` names the two languages; by default, the data options do. Either one may be the
    source of the file. A unit is no pair, and counts as skipped, if it has no target, if
    translate="no" holds for it, or if the state of its target is new, initial or needs-….
    `pairs_of` has the other rules. Inline codes are read as those of TMX. Only one unit is in
    memory.
    """
    languages = corpus.columns or (data.source_language, data.target_language)
    return Rows(
        (corpus.path,) * len(fields),
        lambda skipped: pairs_of(_Translations(corpus.path), languages, skipped),
        lambda: f"xliff {content(corpus.path, read=xml_lines)} {languages}",
    )


class _Translations(UnitCollector):
    def __init__(self, path: str):
        super().__init__(path)
        self._languages = dict.fromkeys(_SIDES, "")
        self._segments: dict[str, tuple[str, str]] = {}  # of the open unit, by side
        self._parts: dict[str, dict[str, str]] = {}  # by seg-source and target, then by mid
        self._part_starts: list[int] = []  # positions of the open parts
        self._side = self._language = self._state = self._kind = ""
        self._may_translate = ["yes"]  # of all open elements
        self._codes: list[Mapping[str, str]] = []  # attributes of the open codes
        self._original: dict[str, str] = {}  # <originalData> of 2.0: codes by id
        self._id = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = _local(tag)
        if self.is_in_text:
            self._start_code(name, attributes)
            return
        if len(self.elements) == 1 and name != "xliff":
            raise InputError(f"{self.path} holds <{name}>; expected XLIFF 1.2 or 2.0.")
        self._may_translate.append(attributes.get("translate") or self._may_translate[-1])
        if name in ("xliff", "file"):
            named = {s: next(filter(None, map(attributes.get, _SIDES[s])), "") for s in _SIDES}
            self._languages = named if any(named.values()) else self._languages
        elif name in _UNITS:
            self._segments, self._state = {}, attributes.get("state", "")
            self._kind, self._parts = attributes.get("restype", ""), {}
        elif name in _SIDES and self._parent() in _UNITS:
            self._language = attributes.get("xml:lang") or self._languages[name]
            self._state = attributes.get("state") or self._state
            self._start_side(name)
        elif name == "seg-source" and self._parent() in _UNITS:
            self._start_side(name)
        elif name == "unit":
            self._original = {}
        elif name == "data":
            self._id = attributes.get("id", "")
            self.start_text()

    def end(self, tag: str) -> None:
        name = _local(tag)
        if self._codes:
            self._end_code(name, self._codes.pop())
            return
        is_kept = self._may_translate.pop() == "no"
        if name == "data" and self.is_in_text:
            self._original[self._id] = self.end_text()
        elif name == "seg-source" and self.is_in_text:
            self.end_text()  # the text of <source>
        elif self.is_in_text:
            self._segments[name] = self._language, self.end_text()
        elif name in _UNITS:
            self._segments.setdefault("target", (self._languages["target"], ""))
            whole = [self._segments[side] for side in _SIDES if side in self._segments]
            for segments in self._divided() or [whole]:
                self.add(Unit(segments, self._fault(segments[-1][1], is_kept)))

    def _start_side(self, name: str) -> None:
        self._side = name
        self.start_text()

    def _divided(self) -> list[list[tuple[str, str]]]:
        """Source and target of each part of a divided unit, with their languages; [] for others."""
        sources, targets = self._parts.get("seg-source", {}), self._parts.get("target", {})
        if not targets or targets.keys() - sources.keys() or "source" not in self._segments:
            return []
        names = self._segments["source"][0], self._segments["target"][0]
        return [
            list(zip(names, (text, targets.get(mid, "")), strict=True))
            for mid, text in sources.items()
        ]

    def _fault(self, target: str, is_kept: bool) -> str:
        if is_kept:
            return 'with translate="no"'
        if self._kind == _HEADER:
            return "header of gettext"
        if not target.strip():
            return "untranslated"
        is_open = self._state in ("new", "initial") or self._state.startswith("needs-")
        return f"in state {self._state}" if is_open else ""

    def _parent(self) -> str:
        return _local(self.elements[-2][0])

    def _start_code(self, name: str, attributes: Mapping[str, str]) -> None:
        self._codes.append(attributes)
        if name in INSIDE:
            self.start_code(name, {"type": attributes.get("ctype", "")})
        elif attributes.get("mtype") == "seg":
            self._part_starts.append(self.position())
        elif name in _AROUND:
            self.add_text(in_place_of("bpt", self._code(attributes, "Start")))

    def _end_code(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in INSIDE:
            self.end_code(name, self._code(attributes))
        elif attributes.get("mtype") == "seg":
            text = self.text_from(self._part_starts.pop())
            self._parts.setdefault(self._side, {})[attributes.get("mid", "")] = text
        elif name in _AROUND:
            self.add_text(in_place_of("ept", self._code(attributes, "End")))
        else:
            self.add_text(in_place_of("ph" if name == "x" else "it", self._code(attributes)))

    def _code(self, attributes: Mapping[str, str], end: str = "") -> str:
        """What the document has in place of a code, or ""."""
        original = self._original.get(attributes.get(f"dataRef{end}", ""))
        return original or attributes.get(f"disp{end}") or attributes.get("equiv-text", "")


def _local(tag: str) -> str:
    """The name of an element without its prefix."""
    return tag.rpartition(":")[2]
