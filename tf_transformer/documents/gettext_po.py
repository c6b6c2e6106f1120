"""PO: the messages of programs, as gettext stores them."""

from collections.abc import Sequence

import polib

from tf_transformer.documents.document import Document, Options, written
from tf_transformer.documents.segments import Item, Segment
from tf_transformer.text.plural_forms import PluralForms
from tf_transformer.text.po_messages import parse_po

_WIDTH = 80  # columns of gettext's lines


def read_po(content: str, options: Options) -> Document:
    """Reads the messages without a translation. Translations are marked as fuzzy.

    The plural form of 1 is the translation of the singular, unless it is also the form of 2. Each
    other form is the translation of the plural. A file without plural forms gets those of its
    language, from the table of Unicode's CLDR.
    """
    longest = max(map(len, content.splitlines()), default=0)
    messages = parse_po(content, "the document", 78 if longest <= _WIDTH else 0)
    metadata = messages.metadata
    language = metadata.get("Language") or options.target.replace("-", "_")
    options.require(target=language)
    header, count, form_of_one = PluralForms.of(metadata.get("Plural-Forms", ""), language)
    # Messages, each with the number of a plural form or None, and its segment.
    forms: list[tuple[polib.POEntry, int | None, Segment]] = []
    for message in messages:
        plural = message.msgstr_plural
        is_done = message.msgstr or any(plural.values())
        if message.obsolete or (is_done and not options.retranslate):
            continue
        segments = [Segment([message.msgid]), Segment([message.msgid_plural])]
        if message.msgid_plural:
            message.msgstr_plural = {n: plural.get(n, "") for n in range(count)}
            forms += [(message, n, segments[n != form_of_one]) for n in range(count)]
        else:
            forms.append((message, None, segments[0]))

    def write(translations: Sequence[Sequence[Item]]) -> bytes:
        for (message, number, _), items in zip(forms, translations, strict=True):
            if number is None:
                message.msgstr = written(items, str)
            else:
                message.msgstr_plural[number] = written(items, str)
                metadata["Plural-Forms"] = header
            message.fuzzy = True
        if forms:
            metadata["Content-Type"] = "text/plain; charset=UTF-8"
            if language:
                metadata["Language"] = language
        return str(messages).encode()

    return Document([segment for *_, segment in forms], write)
