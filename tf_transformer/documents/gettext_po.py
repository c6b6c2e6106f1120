"""PO: the messages of programs, as gettext stores them."""

import re
from collections.abc import Sequence

import polib

from tf_transformer.documents.document import Document, Options, written
from tf_transformer.documents.segments import Item, Segment
from tf_transformer.errors import InputError

_WIDTH = 80  # columns of gettext's lines


def read_po(content: str, options: Options) -> Document:
    """Reads the messages without a translation. Translations are marked as fuzzy.

    The first plural form is the translation of the singular, and each other form of the plural.
    """
    longest = max(map(len, content.splitlines()), default=0)
    try:
        messages = polib.pofile(content, wrapwidth=78 if longest <= _WIDTH else 0)
    except (OSError, ValueError) as error:
        raise InputError(f"it is not a PO file: {error}. Correct it.") from error
    options.require(target=messages.metadata.get("Language"))
    header = messages.metadata.get("Plural-Forms", "")
    count = int(x[1]) if (x := re.search(r"nplurals\s*=\s*(\d)", header)) else 0
    # Messages, each with the number of a plural form or None, and its segment.
    forms: list[tuple[polib.POEntry, int | None, Segment]] = []
    for message in messages:
        plural = message.msgstr_plural
        is_done = message.msgstr or any(plural.values())
        if message.obsolete or (is_done and not options.retranslate):
            continue
        segments = [Segment([message.msgid]), Segment([message.msgid_plural])]
        if message.msgid_plural:
            last = max([count - 1, *map(int, plural)])
            forms += [(message, n, segments[n > 0 or not last]) for n in range(last + 1)]
        else:
            forms.append((message, None, segments[0]))

    def write(translations: Sequence[Sequence[Item]]) -> bytes:
        for (message, number, _), items in zip(forms, translations, strict=True):
            if number is None:
                message.msgstr = written(items, str)
            else:
                message.msgstr_plural[number] = written(items, str)
            message.fuzzy = True
        if forms:
            messages.metadata["Content-Type"] = "text/plain; charset=UTF-8"
            if options.target and not messages.metadata.get("Language"):
                messages.metadata["Language"] = options.target.replace("-", "_")
        return str(messages).encode()

    return Document([segment for *_, segment in forms], write)
