"""Word (.docx): the paragraphs of the text, with headers, footers and notes."""

import copy
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lxml import etree

from tf_transformer.documents.document import Document, Options
from tf_transformer.documents.segments import Code, Item, Segment
from tf_transformer.documents.xml_codes import SPACE, legal, parsed, serialized
from tf_transformer.errors import InputError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARTS = re.compile(
    r".*\.wordprocessingml\.(document\.main|header|footer|footnotes|endnotes|styles)\+xml"
)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError)  # errors of archives
_AROUND = {"hyperlink", "ins", "moveTo", "smartTag", "fldSimple", "sdt"}
_TEXTS = {"t": "", "noBreakHyphen": "\u2011"}  # elements of text; "": their own
_RANGE = re.compile(r"(\w+?(?:Range)?)(Start|End)")
# The format of a paragraph, and hints that Word makes again.
_SKIPPED = {f"{_W}{name}" for name in ("pPr", "proofErr", "lastRenderedPageBreak")}
_BREAKS = {f"{_W}{name}" for name in ("br", "cr", "tab")}  # between words
_CHECKS = {f"{_W}{name}" for name in ("lang", "noProof")}  # no formatting


class _Format(NamedTuple):
    """The content of a pair: an element around it, or None, and the format of its text."""

    around: etree._Element | None
    format: etree._Element | None


class _Run(NamedTuple):
    """Anything but text in a run, such as a picture, with the format of the run."""

    format: etree._Element | None
    part: etree._Element


def read_docx(content: bytes, options: Options) -> Document:
    """Reads the paragraphs of a document. Formatted words and links are inline codes.

    A tab or a line break is one, too; a page break ends a segment. Pictures, fields, comments and
    deleted text stay.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        size = sum(info.file_size for info in archive.infolist())
        if size > options.unpacked_bytes:
            raise InputError(
                f"its parts have {size:,} bytes; at most {options.unpacked_bytes:,} are read. "
                "Divide it, or take out pictures."
            )
        files = {info.filename: archive.read(info) for info in archive.infolist()}
        types = parsed(files["[Content_Types].xml"]).getroot()
    except (*_BROKEN, KeyError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"it is not a Word document: {error}. Save it as .docx.") from error
    names = [x.get("PartName", "")[1:] for x in types if _PARTS.fullmatch(x.get("ContentType", ""))]
    trees = {name: parsed(files[name]) for name in names if name in files}
    paragraphs = [(x, list(_parts(x))) for tree in trees.values() for x in tree.iter(f"{_W}p")]

    def write(translations: Sequence[Sequence[Item]]) -> bytes:
        remaining = iter(translations)
        for paragraph, parts in paragraphs:
            new = [next(remaining) if isinstance(x, Segment) else [x] for x in parts]
            old = [x.items if isinstance(x, Segment) else [x] for x in parts]
            if new != old:
                _write(paragraph, [item for items in new for item in items])
        for language in (x for tree in trees.values() for x in tree.iter(f"{_W}lang")):
            if options.target and language.get(f"{_W}val"):
                language.set(f"{_W}val", options.target)
        changed = {name: serialized(tree) for name, tree in trees.items()}
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as target:
            for info in archive.infolist():
                target.writestr(info, changed.get(info.filename, files[info.filename]))
        return output.getvalue()

    return Document([x for _, parts in paragraphs for x in parts if isinstance(x, Segment)], write)


def _parts(paragraph: etree._Element) -> Iterator[Segment | Code]:
    """The segments of a paragraph, and the page breaks between them."""
    items, depth = list[Item](), 0
    for item in _items(paragraph):
        if isinstance(item, Code) and isinstance(item.content, _Format):
            depth += 1 if item.kind == "open" else -1
        if isinstance(item, Code) and not depth and _is_page_break(item.content):
            yield from (Segment(items), item)
            items = []
        else:
            items.append(item)
    yield Segment(items)


def _is_page_break(content: Any) -> bool:
    part = None if isinstance(content, _Format) else content[0]
    kinds = ("page", "column")
    return isinstance(part, _Run) and part.part.get(f"{_W}type") in kinds


def _items(container: etree._Element) -> Iterator[Item]:
    """The text and the codes of a paragraph, or of an element in it.

    The two ends of a field or of a bookmark are a pair if they are in one element.
    """
    usual, opened = _signature(_usual_format(container)), None
    field, depth = list[_Run](), 0  # the start of a field until its result, and fields in it
    for style, part in _flat(container):
        name, signature = part.tag.removeprefix(_W), _signature(style)
        is_text = name in _TEXTS and not field
        if opened and not (is_text and signature == _signature(opened.content.format)):
            yield Code("close", opened.content, opened.key)
            opened = None
        if is_text and not opened and signature != usual:
            opened = Code("open", _Format(None, style), part)
            yield opened
        kind = part.get(f"{_W}fldCharType")
        if is_text:
            yield _TEXTS[name] or part.text or ""
        elif field or kind == "begin":
            field, depth = [*field, _Run(style, part)], depth + (kind == "begin") - (kind == "end")
            if not depth or (depth == 1 and kind == "separate"):
                yield Code("open" if depth else "alone", field, ("field", container))
                field, depth = [], 0
        elif name in _AROUND:
            inside = _inside(part)
            pair = _Format(part, _usual_format(inside))
            yield Code("open", pair, part)
            yield from _items(inside)
            yield Code("close", pair, part)
        elif range_of := _RANGE.fullmatch(name):
            key = (range_of[1], part.get(f"{_W}id"), container)
            yield Code("open" if range_of[2] == "Start" else "close", [part], key)
        elif part.getparent() is container:
            yield Code("value" if name.endswith("}oMath") else "alone", [part])
        else:
            code = "close" if kind == "end" else "break" if part.tag in _BREAKS else "alone"
            yield Code(code, [_Run(style, part)], ("field", container))  # type: ignore[arg-type]
    if opened:
        yield Code("close", opened.content, opened.key)
    if field:
        yield Code("alone", field)


def _flat(container: etree._Element) -> Iterator[tuple[etree._Element | None, etree._Element]]:
    """The parts of runs, each with the format of its run, and the other children."""
    for child in container.iterchildren(etree.Element):
        if child.tag == f"{_W}r":
            style = child.find(f"{_W}rPr")
            parts = child.iterchildren(etree.Element)
            yield from ((style, x) for x in parts if x is not style and x.tag not in _SKIPPED)
        elif child.tag not in _SKIPPED:
            yield None, child


def _inside(element: etree._Element) -> etree._Element:
    """The element that holds the runs of an element around words."""
    content = element.find(f"{_W}sdtContent")
    return element if content is None else content


def _signature(style: etree._Element | None) -> bytes:
    """Tells formats apart, without the marks for checks of spelling."""
    return b"".join(
        etree.tostring(x) for x in ([] if style is None else style) if x.tag not in _CHECKS
    )


def _usual_format(container: etree._Element) -> etree._Element | None:
    """The format of most of the text in the runs of an element."""
    lengths, styles = Counter[bytes](), dict[bytes, etree._Element | None]()
    for run in container.findall(f"{_W}r"):
        style = run.find(f"{_W}rPr")
        key = _signature(style)
        lengths[key] += sum(len(x.text or "") for x in run.findall(f"{_W}t"))
        styles.setdefault(key, style)
    return styles[lengths.most_common(1)[0][0]] if styles else None


def _write(paragraph: etree._Element, items: Sequence[Item]) -> None:
    """Replaces the content of a paragraph."""
    stack = [(paragraph, _usual_format(paragraph))]  # open elements, with the format of their text
    _clear(paragraph)
    for item in items:
        target, style = stack[-1]
        if isinstance(item, str):
            text = etree.Element(f"{_W}t", {SPACE: "preserve"})
            text.text = legal(item)
            target.append(_run(style, text))
        elif not isinstance(item.content, _Format):
            target.extend(_run(*x) if isinstance(x, _Run) else x for x in item.content)
        elif item.kind == "close":
            stack.pop()
        else:
            around, style = item.content
            if around is not None:
                target.append(around)
                target = _inside(around)
                _clear(target)
            stack.append((target, style))


def _clear(container: etree._Element) -> None:
    for child in list(container):
        if child.tag != f"{_W}pPr":
            container.remove(child)


def _run(style: etree._Element | None, part: etree._Element) -> etree._Element:
    run = etree.Element(f"{_W}r")
    run.extend([part] if style is None else [copy.deepcopy(style), part])
    return run
