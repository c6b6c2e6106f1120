"""The messages of PO files, as polib reads them; the extra `documents`."""

import re
from typing import TYPE_CHECKING

from tf_transformer.errors import InputError

if TYPE_CHECKING:
    import polib

_LINE = re.compile(r'\s*(#.*|(\w+(\[\d+\])?\s*)?".*"\s*)?')  # without a broken string


def parse_po(text: str, name: str, width: int = 78) -> "polib.POFile":
    """The messages of a text, which an error calls `name`; `width` is that of the written lines.

    polib takes a text without its last quotation mark for an empty one. Here, a line that is
    neither a comment nor a keyword with a whole text is an `InputError`.
    """
    import polib

    for number, line in enumerate(text.splitlines(), 1):  # as polib divides it
        if not _LINE.fullmatch(line):
            raise InputError(
                f"line {number:,} of {name} is not PO: expected a comment, or a keyword and a "
                f"text in quotation marks, got {line:.40}. Check it with msgfmt -c."
            )
    try:
        return polib.pofile(text, wrapwidth=width)
    except (OSError, ValueError) as error:
        raise InputError(f"{name} is not a PO file: {error}. Check it with msgfmt -c.") from error
