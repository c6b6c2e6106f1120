"""XML of translation tools: documents, and elements as texts with inline codes."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape

from lxml import etree

from tf_transformer.documents.document import written
from tf_transformer.documents.segments import Code, Item
from tf_transformer.errors import InputError

SPACE = "{http://www.w3.org/XML/1998/namespace}space"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAKS = {"lb", "xlf:lb"}  # types of codes
_AROUND = {"g", "mrk", "hi", "pc"}  # elements around words
_STARTS = {"bpt": "rid id i", "bx": "rid id", "sc": "id", "sm": "id"}  # and what names the pair
_ENDS = {"ept": "rid id i", "ex": "rid id", "ec": "startRef", "em": "startRef"}


def parsed(content: bytes) -> etree._ElementTree:
    """The tree of an XML document. Entities and other files are not read."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_blank_text=False)
    try:
        tree = etree.fromstring(content, parser).getroottree()
    except etree.XMLSyntaxError as error:
        raise InputError(f"it is not well-formed XML: {error}. Correct it.") from error
    declared = () if tree.docinfo.internalDTD is None else tree.docinfo.internalDTD.entities()
    if any(True for _ in (*declared, *tree.iter(etree.Entity))):
        raise InputError("it uses entities, which are not read. Write their text in their place.")
    return tree


def serialized(tree: etree._ElementTree) -> bytes:
    """The content of a document in its encoding."""
    encoding = tree.docinfo.encoding or "UTF-8"
    end = b"\n" * (not encoding.upper().startswith(("UTF-16", "UTF-32", "UCS")))
    alone = tree.docinfo.standalone or None
    return etree.tostring(tree, xml_declaration=True, encoding=encoding, standalone=alone) + end


def name_of(element: etree._Element) -> str:
    """The name of an element without its namespace; "" for a comment."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """The children with a name."""
    return (child for child in element if name_of(child) == name)


def child(element: etree._Element, name: str) -> Any:
    """The first child with a name, or None."""
    return next(children(element, name), None)


def has_text(element: etree._Element | None) -> bool:
    """Whether an element exists and holds more than white space."""
    return element is not None and bool("".join(element.itertext()).strip() or len(element))


def tags_of(element: etree._Element) -> tuple[str, str]:
    """The start tag and the end tag of an element."""
    shell = etree.Element(element.tag, element.attrib, element.nsmap)
    shell.text = ""
    start, _, end = etree.tostring(shell, encoding="unicode").rpartition("</")
    return start, f"</{end}"


def items_of(element: etree._Element) -> Iterator[Item]:
    """The text of an element, with its child elements as codes in XML."""
    around = [element, *element.iterancestors()]
    rules = filter(None, (x.get(SPACE) for x in around))
    is_kept = next(rules, "") == "preserve" or "seg" in map(name_of, around)

    def spaced(text: str | None) -> str:
        return text or "" if is_kept else re.sub(r"[ \t]*[\r\n]\s*", " ", text or "")

    yield spaced(element.text)
    for part in element:
        name, whole = name_of(part), etree.tostring(part, with_tail=False, encoding="unicode")
        if name in _AROUND and part.get("translate") != "no":
            start, end = tags_of(part)
            yield Code("open", start, part)
            yield from items_of(part)
            yield Code("close", end, part)
        elif name in _STARTS | _ENDS:
            names = (_STARTS | _ENDS)[name].split()
            key = next((part.get(x) for x in names if part.get(x)), "")
            yield Code("open" if name in _STARTS else "close", whole, key)
        elif _LINE_BREAKS & {part.get(x) for x in ("ctype", "type", "subType")}:
            yield Code("break", whole)
        else:
            yield Code("value" if name else "alone", whole)
        yield spaced(part.tail)


def xml_of(items: Sequence[Item]) -> str:
    """Items of a translation as XML."""
    return written(items, lambda text: escape(legal(text)))


def legal(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _ILLEGAL.sub("", text)


def fill(element: etree._Element, content: str) -> None:
    """Gives an element new content in XML."""
    start, end = tags_of(element)
    new = parsed(f"{start}{content}{end}".encode()).getroot()
    element[:] = new[:]
    element.text = new.text


def insert_after(element: etree._Element, new: etree._Element) -> None:
    """Adds a new element behind another one, with the same indentation."""
    parent = element.getparent()
    new.tail, element.tail = element.tail, parent.text
    parent.insert(parent.index(element) + 1, new)
