"""XLIFF 1.2 and 2.0: texts with their translations, as translators' tools exchange them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lxml import etree

from tf_transformer.documents import xml_codes as xml
from tf_transformer.documents.document import Document, Options
from tf_transformer.documents.segments import Code, Item, Segment
from tf_transformer.errors import InputError

_OPEN_STATES = {"new", "needs-translation", "initial"}  # of targets without a translation


class _Unit(NamedTuple):
    """What gets a target: `<trans-unit>` of 1.2 or `<segment>` of 2.0."""

    element: etree._Element
    source: etree._Element
    parts: list[str | Segment]  # XML and segments of the target, in order


def read_xliff(content: bytes, options: Options) -> Document:
    """Reads the units without a translation.

    A new target has the state needs-review-translation with the qualifier mt-suggestion in 1.2, and
    translated in 2.0. Units with translate="no", with approved="yes" or with a translation stay.
    """
    tree = xml.parsed(content)
    root = tree.getroot()
    version = root.get("version", "")
    if xml.name_of(root) != "xliff" or version[:2] not in ("1.", "2."):
        raise InputError(f"it is <{xml.name_of(root)}> {version}; expected XLIFF 1.2 or 2.0.")
    is_first = version.startswith("1.")
    names = ("source-language", "target-language") if is_first else ("srcLang", "trgLang")
    named = [x for x in root.iter() if xml.name_of(x) == "file"] if is_first else [root]
    for element in named:
        options.require(element.get(names[0]), element.get(names[1]))
        if not element.get(names[1]) and options.target:
            element.set(names[1], options.target)
        elif not element.get(names[1]) and not is_first:
            raise InputError("it names no target language. Give --target_language.")
    kind = "trans-unit" if is_first else "segment"
    elements = [x for x in root.iter() if xml.name_of(x) == kind]
    units = [unit for x in elements for unit in _units(x, options.retranslate)]

    def write(translations: Sequence[Sequence[Item]]) -> bytes:
        remaining = iter(translations)
        for element, source, parts in units:
            new = (x if isinstance(x, str) else xml.xml_of(next(remaining)) for x in parts)
            _set_target(element, source, "".join(new), is_first)
        return xml.serialized(tree)

    return Document([x for u in units for x in u.parts if isinstance(x, Segment)], write)


def _units(element: etree._Element, retranslate: bool) -> Iterator[_Unit]:
    target, source = xml.child(element, "target"), xml.child(element, "source")
    named = (x.get("translate") for x in (element, *element.iterancestors()))
    states = {element.get("state"), target.get("state") if target is not None else None}
    is_done = xml.has_text(target) and not states & _OPEN_STATES and not retranslate
    is_kept = next(filter(None, named), "yes") == "no" or element.get("approved") == "yes"
    if source is None or not xml.has_text(source) or is_done or is_kept:
        return
    divided = xml.child(element, "seg-source")
    parts = [] if divided is None else list(_sentences(divided))
    if not any(isinstance(part, Segment) for part in parts):
        parts = [Segment(xml.items_of(source))]
    yield _Unit(element, source, parts)


def _sentences(element: etree._Element) -> Iterator[str | Segment]:
    """The parts of `<seg-source>`, whose sentences are in `<mrk mtype="seg">`."""
    sentence: list[Item] | None = None
    for item in xml.items_of(element):
        if isinstance(item, Code) and _is_sentence(item.key):
            yield from [] if sentence is None else [Segment(sentence)]
            yield item.content
            sentence = [] if item.kind == "open" else None
        elif sentence is None:
            yield xml.xml_of([item])
        else:
            sentence.append(item)


def _is_sentence(key: Any) -> bool:
    return isinstance(key, etree._Element) and key.get("mtype") == "seg"


def _set_target(element: etree._Element, source: etree._Element, new: str, is_first: bool) -> None:
    target = xml.child(element, "target")
    if target is None:
        target = etree.Element(source.tag.replace("source", "target"), nsmap=source.nsmap)
        target.attrib.update({xml.SPACE: source.get(xml.SPACE)} if source.get(xml.SPACE) else {})
        divided = xml.child(element, "seg-source")
        xml.insert_after(source if divided is None else divided, target)
    xml.fill(target, new)
    if is_first:
        target.set("state", "needs-review-translation")
        target.set("state-qualifier", "mt-suggestion")
    else:
        element.set("state", "translated")
        element.attrib.pop("subState", None)
