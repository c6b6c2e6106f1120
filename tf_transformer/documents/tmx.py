"""TMX: translation memories, whose units get a variant in the target language."""

from collections.abc import Sequence

from lxml import etree

from tf_transformer.documents import xml_codes as xml
from tf_transformer.documents.document import Document, Options
from tf_transformer.documents.segments import Item, Segment
from tf_transformer.errors import InputError

_ANY = "*all*"  # as the source language of a memory


def read_tmx(content: bytes, options: Options) -> Document:
    """Reads the units without a variant in the target language; each gets one, as the last."""
    tree = xml.parsed(content)
    header = next((x for x in tree.iter() if xml.name_of(x) == "header"), None)
    if header is None:
        raise InputError(f"it is <{xml.name_of(tree.getroot())}>; expected TMX with a header.")
    if not options.target:
        raise InputError("a new variant needs a language. Give --target_language.")
    source = options.source or header.get("srclang", _ANY)
    units, languages = [], dict[str, None]()
    for unit in (x for x in tree.iter() if xml.name_of(x) == "tu"):
        variants = [x for x in xml.children(unit, "tuv") if xml.has_text(xml.child(x, "seg"))]
        languages |= {_language(x): None for x in variants}
        targets = [x for x in xml.children(unit, "tuv") if _is_in(x, options.target)]
        texts = [x for x in variants if _is_in(x, source) and x not in targets]
        if texts and (options.retranslate or not {*targets} & {*variants}):
            segment = Segment(xml.items_of(xml.child(texts[0], "seg")))
            units.append((unit, texts[0], [*targets, None][0], segment))
        languages |= {source: None} if texts else {}
    if source not in languages:
        raise InputError(
            f"it has no text in {source}; its languages are {', '.join(languages) or 'none'}. Give "
            "another file or another --run_dir."
        )

    def write(translations: Sequence[Sequence[Item]]) -> bytes:
        for (unit, text, target, _), items in zip(units, translations, strict=True):
            if target is None:
                target = _variant(text, options.target)
                xml.insert_after([*xml.children(unit, "tuv")][-1], target)
            xml.fill(xml.child(target, "seg"), xml.xml_of(items))
        return xml.serialized(tree)

    return Document([segment for *_, segment in units], write)


def _variant(text: etree._Element, language: str) -> etree._Element:
    """A new variant of a unit, beside a variant with the source text."""
    variant = etree.Element("tuv", creationtool="tf_transformer")
    variant.set("lang" if text.get("lang") else xml.LANGUAGE, language)
    etree.SubElement(variant, "seg").tail = xml.child(text, "seg").tail
    variant.text = text.text
    return variant


def _language(variant: etree._Element) -> str:
    return variant.get(xml.LANGUAGE) or variant.get("lang", "")


def _is_in(variant: etree._Element, language: str) -> bool:
    """Whether a variant is in a language, or in a variety of it (RFC 4647, basic filtering)."""
    named, wanted = (x.lower().replace("_", "-") for x in (_language(variant), language))
    return wanted == _ANY or f"{named}-".startswith(f"{wanted}-")
