"""PO: the messages of programs with their translations, as gettext stores them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Row, Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines
from tf_transformer.text.po_messages import parse_po

if TYPE_CHECKING:
    import polib

    from tf_transformer.text.plural_forms import PluralForms

# The header is a text of several lines, or of one line after msgstr.
_CHARSET = re.compile(
    rb'^(?:msgstr\s*)?"(?:[^"]*\\n)?Content-Type:.*charset=([\w:.-]+)', re.MULTILINE
)


def require_packages() -> None:
    """Raises an `InputError` when a package that reads PO files is missing."""
    try:
        import babel  # noqa: F401
        import polib  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"a corpus of format po needs the package {error.name}: pip install "
            "'tf_transformer[documents]', or pip install '.[documents]' in the repository."
        ) from error


def read_po(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a PO file. Each translation of a message gives a pair, from `msgid` to `msgstr`.

    With `reverse`, the translation is the source. A fuzzy, obsolete or untranslated message is no
    pair, and counts as skipped. The plural form of 1 pairs with the singular, and each other form
    with the plural; see `PluralForms`. The file may name its charset. It is in memory as a whole.

    A pass raises an `InputError` if the file is not a PO file, with the line, or if its header
    names another language than that of the translation in the data options.
    """

    def start(skipped: Counter[str]) -> Iterator[Row]:
        require_packages()
        from tf_transformer.text.plural_forms import PluralForms

        messages = _messages(corpus.path)
        language = messages.metadata.get("Language", "")
        _check_language(corpus, language, data)
        try:
            plural_forms = PluralForms.of(messages.metadata.get("Plural-Forms", ""), language)
        except InputError as error:
            raise InputError(f"{corpus.path} cannot be read: {error}") from error
        for message in messages:
            pairs = [] if message.obsolete or message.fuzzy else _pairs(message, plural_forms)
            if not pairs:
                kinds = {"obsolete": message.obsolete, "fuzzy": message.fuzzy}
                skipped[next((kind for kind in kinds if kinds[kind]), "untranslated")] += 1
            for pair in pairs:
                texts = pair[::-1] if corpus.reverse else pair
                yield message.linenum, tuple(text.encode() for text in texts)

    return Rows(
        (corpus.path,) * len(fields), start, lambda: f"po {content(corpus.path)} {corpus.reverse}"
    )


def _pairs(message: "polib.POEntry", plural_forms: "PluralForms") -> list[tuple[str, str]]:
    """The translated texts of a message. A message without a plural has one text."""
    forms: dict[int | None, str] = {None: message.msgstr}
    if message.msgid_plural:
        forms = message.msgstr_plural
    return [
        (message.msgid if form in (None, plural_forms.form_of_one) else message.msgid_plural, text)
        for form, text in forms.items()
        if text.strip()
    ]


def _check_language(corpus: Corpus, language: str, data: DataConfig) -> None:
    side = "source" if corpus.reverse else "target"
    wanted = data.source_language if corpus.reverse else data.target_language
    codes = [re.split("[-_@]", name.lower())[0] for name in (language, wanted)]
    if language and len(codes[0]) == len(codes[1]) and codes[0] != codes[1] and wanted != "mul":
        raise InputError(
            f"{corpus.path} has translations into {language}, but data.{side}_language is "
            f"{wanted}. Give data.{side}_language {codes[0]}, or a file in {wanted}."
        )


def _messages(path: str) -> "polib.POFile":
    """Reads all messages; raises an `InputError` for a file that is no PO file."""
    return parse_po("".join(f"{line}\n" for line in _decoded(path)), path)


def _decoded(path: str) -> Iterator[str]:
    """Decodes the lines of a file, from the charset that its header names, or from UTF-8."""
    lines = list(read_lines(path))
    named = _CHARSET.search(b"\n".join(lines[:100]))
    charset = named[1].decode() if named else "utf-8"
    try:
        "".encode(charset)
    except LookupError:
        charset = "utf-8"  # templates name "CHARSET"
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode(charset)
        except UnicodeDecodeError as error:
            raise InputError(
                f"line {number:,} of {path} is not {charset}: {error}. Correct the charset in the "
                "header, or convert the file."
            ) from error
