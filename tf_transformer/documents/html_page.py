"""HTML: the texts between tags, and attributes that a reader sees. Everything else stays."""

import html
import itertools
import re
from collections.abc import Sequence, Set
from html.parser import HTMLParser
from typing import NamedTuple

from tf_transformer.documents.document import Document, Options, TextDocument
from tf_transformer.documents.segments import Code
from tf_transformer.text import kept_spans

Attributes = Sequence[tuple[str, str | None]]

VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"),
    *("track", "wbr"),
}
_OTHERS = """
address audio base button canvas caption col colgroup dialog dir fieldset frame frameset hgroup
iframe input label legend link map menu meta noframes noscript object optgroup option picture script
search select source style template textarea title track video
"""
BLOCKS = frozenset((*kept_spans.BLOCKS, *_OTHERS.split())) - {"br"}
"""Elements of HTML at whose tags a text ends."""
KEPT = frozenset(
    {"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "template", "textarea", "var"}
)
"""Elements of HTML whose content stays."""
_ATTRIBUTE = re.compile(
    r"""(\s(?:alt|title|placeholder|aria-label|label)\s*=\s*)("[^"]*"|'[^']*')""", re.IGNORECASE
)
_LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*)("[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)


class Rules(NamedTuple):
    """How elements are read.

    Attributes:
        blocks: elements at whose tags a text ends. All others stand inside of texts.
        kept: elements whose content stays.
        has_attributes: whether attributes that a reader sees are translated.
        is_xml: whether no element is void or holds a script.
    """

    blocks: Set[str] = BLOCKS
    kept: Set[str] = KEPT
    has_attributes: bool = True
    is_xml: bool = False


def read_html(content: str, options: Options, rules: Rules = Rules()) -> Document:
    """Reads a page. Elements with translate="no" or class="notranslate", code and scripts stay.

    The attribute `lang` of the page becomes the target language.
    """
    document = TextDocument()
    add_html(document, content, options, rules)
    return document.document()


def escaped(text: str) -> str:
    """The text as it stands between tags."""
    return html.escape(text, quote=False)


def add_html(
    document: TextDocument, content: str, options: Options, rules: Rules = Rules()
) -> None:
    """Adds the texts of a page, or of a part of a page, to a document."""
    document.escape = escaped
    void = frozenset[str]() if rules.is_xml else VOID
    page = _Page(content, rules.is_xml)
    kept, name, depth = "", "", 0  # an element that stays: its source so far, name and open tags
    for (start, kind, tag, attributes), (stop, *_) in itertools.pairwise(page.events):
        source = content[start:stop]
        if depth:
            kept += source
            depth += (kind == "start") - (kind == "end") if tag == name else 0
            if not depth and name in rules.blocks:
                document.stop(kept)
            elif not depth:
                document.add(Code("value", kept), kept)
        elif kind == "start" and tag not in void and _stays(tag, attributes, rules.kept):
            kept, name, depth = source, tag, 1
        elif kind == "text":
            document.add(re.sub(r"[ \t\r\n]+", " ", html.unescape(source)), source)
        elif kind == "other":
            document.add(Code("alone", source), source)
        elif tag in rules.blocks:
            if tag == "html" and kind == "start" and options.target:
                source = _in_language(source, options.target)
            document.stop()
            document.stop(_with_attributes(document, source, rules))
        else:
            alone = "break" if tag == "br" and not rules.is_xml else "alone"
            is_alone = tag in void or kind == "single"
            code = alone if is_alone else "open" if kind == "start" else "close"
            parts = _with_attributes(document, source, rules)
            document.add(Code(code, parts, tag), source)  # type: ignore[arg-type]
    if depth:
        document.stop(kept)


def _stays(tag: str, attributes: dict[str, str | None], kept: Set[str]) -> bool:
    classes = (attributes.get("class") or "").split()
    return tag in kept or attributes.get("translate") == "no" or "notranslate" in classes


def _with_attributes(document: TextDocument, source: str, rules: Rules) -> str | list[str]:
    """A tag; a list of its parts if the values of attributes are segments."""
    parts, end = list[str](), 0
    for match in _ATTRIBUTE.finditer(source) if rules.has_attributes else ():
        first, last = match.start(2) + 1, match.end(2) - 1
        parts += [source[end:first], source[first:last]]
        end = last
    if not end:
        return source
    return document.within([*parts, source[end:]], html.unescape, html.escape)


def _in_language(source: str, language: str) -> str:
    """The start tag of a page with another language."""
    changed, count = _LANGUAGE.subn(rf'\1"{language}"', source)
    return changed if count else f'{source[:5]} lang="{language}"{source[5:]}'


class _Page(HTMLParser):
    """The events of a page: where each starts, its kind, its tag and its attributes.

    The kinds are start, end, single (a tag of XHTML that ends itself), text and other. The last
    event is the end of the page.
    """

    def __init__(self, content: str, is_xml: bool):
        super().__init__(convert_charrefs=False)
        self._is_xml = is_xml
        if is_xml:
            self.CDATA_CONTENT_ELEMENTS = self.RCDATA_CONTENT_ELEMENTS = ()  # type: ignore[misc]
        self.events: list[tuple[int, str, str, dict[str, str | None]]] = []
        self._lines = [0, *(match.end() for match in re.finditer("\n", content))]
        self.feed(content)
        self.close()
        self.events.append((len(content), "", "", {}))

    def _add(self, kind: str, tag: str = "", attributes: Attributes = ()) -> None:
        line, column = self.getpos()
        self.events.append((self._lines[line - 1] + column, kind, tag, dict(attributes)))

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self._add("start", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        self._add("single", tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._add("end", tag)

    def handle_data(self, data: str) -> None:
        self._add("text")

    def handle_charref(self, name: str) -> None:
        self._add("text")

    def handle_entityref(self, name: str) -> None:
        self._add("text")

    def handle_comment(self, data: str) -> None:
        self._add("other")

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Reads `<![if IE]>` as a comment, as browsers do, and CDATA of XML as a whole."""
        end = self.rawdata.find("]]>", i) if self._is_xml else -1
        if end < 0:
            return self.parse_bogus_comment(i)
        self._add("other")
        return end + len("]]>")

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")
