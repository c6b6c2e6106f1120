"""Markdown: the texts of paragraphs, headings, lists and tables. Everything else stays."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from tf_transformer.documents.document import Document, Options, TextDocument
from tf_transformer.documents.html_page import VOID, add_html
from tf_transformer.documents.segments import Code, Item

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n.*?^\1[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_DEFINITION = re.compile(r"^ {0,3}\[((?:[^\[\]\\]|\\.)+)\]:", re.MULTILINE)
_KEPT = re.compile(r"(\[\^[^\]\s]+\]:?|^\[[ xX]\](?=\s))")  # a footnote, a check box
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)[^>]*?(/?)>")
_SPECIAL = re.compile(r"[\\`*_{}\[\]()<>#+.!|~-]")
_REFERENCE = "\0"  # starts the address of a link that a definition gives


def read_markdown(content: str, options: Options) -> Document:
    """Reads a text in CommonMark with tables and strike-through.

    Code, addresses of links, definitions and front matter stay. A paragraph becomes one line. Text
    in blocks of HTML is read as by `read_html`.
    """
    front = _FRONT_MATTER.match(content)
    start = front.end() if front else 0
    body = content[start:]
    document = TextDocument()
    document.stop(content[:start])
    labels = {normalizeReference(m[1]): m[1] for m in _DEFINITION.finditer(body)}
    lines = [0, *(match.end() for match in re.finditer("\n", body)), len(body)]
    place, before = 0, ""  # the end of what is read; the type of the token before
    for token in _parser().parse(body):
        if token.map and token.type in ("inline", "html_block"):
            first, last = max(place, lines[token.map[0]]), lines[token.map[1]]
            is_cell = before in ("th_open", "td_open")
            if token.type == "html_block":
                document.stop(body[place:first])
                add_html(document, body[first:last], options)
                document.stop()
                place = last
            elif spans := _lines_of(token.content, body, first, last, is_cell):
                document.escape = _in_cell if is_cell else str
                document.stop(body[place : spans[0][0]])
                place = spans[-1][1]
                document.add("", body[spans[0][0] : place])
                between = body[spans[-2:][0][1] : spans[-1][0]].lstrip(" \\")
                for item in _items(document, token.children or [], labels, between):
                    if is_cell and isinstance(item, Code) and isinstance(item.content, str):
                        item = item._replace(content=_in_cell(item.content))
                    document.add(item)
                document.stop()
        before = token.type
    document.stop(body[place:])
    return document.document()


def _parser() -> MarkdownIt:
    """A parser that keeps escapes, addresses and the labels of definitions apart."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    parser.normalizeLink = str  # type: ignore[assignment, method-assign]

    def mark_references(state: StateCore) -> None:
        for label, reference in state.env.get("references", {}).items():
            reference["href"] = _REFERENCE + label

    parser.core.ruler.after("block", "mark_references", mark_references)
    return parser


def _in_cell(text: str) -> str:
    return text.replace("|", r"\|")


def _lines_of(
    content: str, body: str, start: int, stop: int, is_cell: bool
) -> list[tuple[int, int]]:
    """Where each line of a content stands between two places of a text; [] if it does not."""
    spans = []
    for line in (_in_cell(content) if is_cell else content).split("\n"):
        place = body.find(line, start, stop)
        if place < 0:
            return []
        start = place + len(line)
        spans.append((place, start))
    return spans


def _items(
    document: TextDocument, tokens: list[Token], labels: dict[str, str], between: str
) -> Iterator[Item]:
    """The text and the codes of a line; `between` is what stands between its lines."""
    links, address = list[str](), False  # the ends of open links; inside an automatic link
    for token in tokens:
        kind, _, end = token.type.rpartition("_")
        if token.type == "text" and not address:
            for place, text in enumerate(_KEPT.split(token.content)):
                is_value = text.startswith("[^") and not text.endswith(":")
                yield Code("value" if is_value else "alone", text) if place % 2 else text
        elif token.type == "text_special":
            is_text = token.info == "entity" and not _SPECIAL.fullmatch(token.content)
            yield token.content if is_text else Code("value", token.markup)
        elif token.type == "softbreak":
            yield " "
        elif token.type == "hardbreak":
            yield Code("break", f"\\{between}")
        elif token.type == "code_inline":
            pad = " " * (token.content[:1] == "`" or token.content[-1:] == "`")
            yield Code("value", f"{token.markup}{pad}{token.content}{pad}{token.markup}")
        elif token.type == "html_inline":
            yield _html(token.content)
        elif token.type == "image":
            parts = ["![", token.content, _link_end(token, "src", labels)]
            yield Code("alone", document.within(parts, str, str))
        elif kind == "link" and token.markup == "autolink":
            address = end == "open"
            if address:
                yield Code("value", f"<{token.attrs['href']}>".replace("<mailto:", "<"))
        elif token.type == "link_open":
            links.append(_link_end(token, "href", labels))
            yield Code("open", "[", "link")
        elif token.type == "link_close":
            yield Code("close", links.pop(), "link")
        elif end in ("open", "close"):
            yield Code(end, token.markup, token.tag)  # type: ignore[arg-type]


def _link_end(token: Token, name: str, labels: dict[str, str]) -> str:
    """What stands behind the text of a link or of an image."""
    address, title = str(token.attrs[name]), token.attrs.get("title")
    if address.startswith(_REFERENCE):
        label = address.removeprefix(_REFERENCE)
        return f"][{labels.get(label, label)}]"
    if not address or re.search(r"[\s()<>]", address):
        address = f"<{address}>"
    quoted = str(title).replace('"', r"\"") if title else ""
    return f']({address} "{quoted}")' if title else f"]({address})"


def _html(source: str) -> Code:
    tag = _TAG.fullmatch(source)
    if not tag or tag[3] or tag[2].lower() in VOID:
        return Code("alone", source)
    return Code("close" if tag[1] else "open", source, ("html", tag[2].lower()))
