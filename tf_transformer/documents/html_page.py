"""HTML: the texts between tags, and attributes that a reader sees. Everything else stays."""

import html
import itertools
import re
from collections.abc import Sequence
from html.parser import HTMLParser

from tf_transformer.documents.document import Document, Options, TextDocument
from tf_transformer.documents.segments import Code

Attributes = Sequence[tuple[str, str | None]]

VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"),
    *("track", "wbr"),
}
_INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "data", "del", "dfn", "em"),
    *("font", "i", "img", "ins", "mark", "q", "s", "small", "span", "strike", "strong", "sub"),
    *("sup", "time", "tt", "u", "wbr"),
}
_KEPT_INLINE = {"code", "kbd", "samp", "var", "math", "svg"}
_KEPT = _KEPT_INLINE | {"script", "style", "pre", "textarea", "template"}
_ATTRIBUTE = re.compile(
    r"""(\s(?:alt|title|placeholder|aria-label|label)\s*=\s*)("[^"]*"|'[^']*')""", re.IGNORECASE
)
_LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*)("[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)


def read_html(content: str, options: Options) -> Document:
    """Reads a page. Elements with translate="no" or class="notranslate", code and scripts stay.

    The attribute `lang` of the page becomes the target language.
    """
    document = TextDocument()
    add_html(document, content, options)
    return document.document()


def escaped(text: str) -> str:
    """The text as it stands between tags."""
    return html.escape(text, quote=False)


def add_html(document: TextDocument, content: str, options: Options) -> None:
    """Adds the texts of a page, or of a part of a page, to a document."""
    document.escape = escaped
    page = _Page(content)
    kept, name, depth = "", "", 0  # an element that stays: its source so far, name and open tags
    for (start, kind, tag, attributes), (stop, *_) in itertools.pairwise(page.events):
        source = content[start:stop]
        if depth:
            kept += source
            depth += (kind == "start") - (kind == "end") if tag == name else 0
            if not depth:
                _add_kept(document, name, kept)
        elif kind == "start" and tag not in VOID and _stays(tag, attributes):
            kept, name, depth = source, tag, 1
        elif kind == "text":
            document.add(re.sub(r"[ \t\r\n]+", " ", html.unescape(source)), source)
        elif kind == "other":
            document.add(Code("alone", source), source)
        elif tag in _INLINE:
            single = tag in VOID or kind == "single"
            code = "alone" if single else "open" if kind == "start" else "close"
            parts = _with_attributes(document, source)
            document.add(Code(code, parts, tag), source)  # type: ignore[arg-type]
        else:
            if tag == "html" and kind == "start" and options.target:
                source = _in_language(source, options.target)
            document.stop()
            document.stop(_with_attributes(document, source))
    if depth:
        document.stop(kept)


def _add_kept(document: TextDocument, name: str, source: str) -> None:
    if name in _INLINE | _KEPT_INLINE:
        document.add(Code("value", source), source)
    else:
        document.stop(source)


def _stays(tag: str, attributes: dict[str, str | None]) -> bool:
    classes = (attributes.get("class") or "").split()
    return tag in _KEPT or attributes.get("translate") == "no" or "notranslate" in classes


def _with_attributes(document: TextDocument, source: str) -> str | list[str]:
    """A tag; a list of its parts if the values of attributes are segments."""
    parts, end = list[str](), 0
    for match in _ATTRIBUTE.finditer(source):
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

    def __init__(self, content: str):
        super().__init__(convert_charrefs=False)
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
        """Reads `<![if IE]>` as a comment, as browsers do; otherwise some are errors."""
        return self.parse_bogus_comment(i)

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")
