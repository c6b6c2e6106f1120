"""Divides HTML and XML into the parts that a model translates, whose tags it keeps."""

import html
import re
from collections.abc import Collection, Iterator, Sequence

from tf_transformer.files.writing import one_line
from tf_transformer.serving.formats import Divided, Format
from tf_transformer.serving.requests import require
from tf_transformer.text.kept_spans import (
    ALONE,
    CLOSING,
    TAG_NAME,
    divide,
    pattern_of,
    spans,
    without_spans,
)
from tf_transformer.text.normalization import has_letters

KEEP_TAGS = "Give --keep common to the command that serves its run, or that exports it."
TAGS = ("tags",)  # and comments and entities
_PATTERN = pattern_of(TAGS)
_NEED_ENTITIES = "<>&\u00a0"
_STAYS = re.compile(
    r"\stranslate\s*=\s*[\"']?no\b|\sclass\s*=\s*(?:\"[^\"]*|'[^']*)?\bnotranslate\b", re.IGNORECASE
)
_NAMES_OF_BLOCKS = """
address article aside blockquote body br button caption col colgroup dd details dialog div dl dt
fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li link main
menu meta nav ol optgroup option p section select summary table tbody td tfoot th thead title tr ul
"""
IGNORED = frozenset({"math", "pre", "script", "style", "svg", "textarea"})
"""Elements of HTML whose content is not translated."""
BLOCKS = frozenset(_NAMES_OF_BLOCKS.split())
"""Elements of HTML at whose tags a sentence ends."""


def divide_markup(text: str, splitting: Collection[str], ignored: Collection[str]) -> Divided:
    """The parts of markup with letters, each with the tags inside of a sentence.

    Example:
        >>> divide_markup("<p>Caf&eacute; <b>A</b> &lt; B</p>", {"p"}, ())
        Divided(parts=['Café <b>A</b> &lt; B'], around=['<p>', '</p>'])
    """
    parts, around = [], [""]
    for is_sentence, run in _runs(text.replace("\0", ""), splitting, ignored):
        if is_sentence and has_letters(without_spans(run, TAGS)):
            start, end = len(run) - len(run.lstrip()), len(run.rstrip())
            parts.append(_readable(run[start:end]))
            around[-1] += run[:start]
            around.append(run[end:])
        else:
            around[-1] += run
    return Divided(parts, around)


def with_tags(part: str, translation: str) -> str:
    """The translation of a part as markup; refuses one that does not have the tags of its part."""
    require(
        sorted(spans(part, TAGS)) == sorted(spans(translation, TAGS)),
        f"The translation does not have the tags of the text. {KEEP_TAGS}",
        status=502,
    )
    pieces = _pieces_of(one_line(translation))
    pieces[::2] = [html.escape(text, quote=False) for text in pieces[::2]]
    return "".join(pieces)


def markup(splitting: Collection[str] = (), ignored: Collection[str] = ()) -> Format:
    """The format of markup, with names of elements that end sentences or are not translated."""
    return Format(lambda text: divide_markup(text, splitting, ignored), with_tags)


HTML = markup(BLOCKS, IGNORED)


def _runs(
    text: str, splitting: Collection[str], ignored: Collection[str]
) -> Iterator[tuple[bool, str]]:
    """Divides markup into sentences with their tags, and what stands between; says which it is."""
    pieces = _pieces_of(text)
    run, index = "", 0
    while index < len(pieces):
        tag, end, ends_sentence = pieces[index], index + 1, False
        if index % 2 and (name := _name_of(tag)):
            ends_sentence = name in splitting
            if name in ignored or _STAYS.search(tag):
                end = _end_of_element(pieces, index)
                content = "".join(pieces[index + 1 : end]).strip()
                ends_sentence |= end > index + 1 and not re.fullmatch(CLOSING, content)
        whole = "".join(pieces[index:end])
        if ends_sentence:
            yield True, run
            yield False, whole
            run = ""
        else:
            run += whole
        index = end
    yield True, run


def _pieces_of(text: str) -> list[str]:
    """Divides markup into text, span, text, ..., text. Only texts may be empty."""
    texts = divide(text, _PATTERN)
    pieces = texts[:1]
    for span, following in zip(texts[1::2], texts[2::2], strict=True):
        if span:
            pieces += [span, following]
        else:
            pieces[-1] += following
    return pieces


def _name_of(span: str) -> str:
    """The name of a tag's element in lower case; "" for comments and entities."""
    match = re.match(TAG_NAME, span, re.ASCII)
    return match[1].lower() if match else ""


def _end_of_element(pieces: Sequence[str], start: int) -> int:
    """The index after the closing tag of the element whose opening tag is at an index."""
    name, depth = _name_of(pieces[start]), 0
    for index in range(start, len(pieces), 2):
        if _name_of(pieces[index]) == name and not re.match(ALONE, pieces[index], re.ASCII):
            depth += -1 if re.match(CLOSING, pieces[index]) else 1
        if depth <= 0:
            return index + 1
    return len(pieces)


def _readable(run: str) -> str:
    """A sentence with characters in place of entities that markup does not need."""
    pieces = _pieces_of(run)
    pieces[::2] = [re.sub(r"\s+", " ", text) for text in pieces[::2]]
    for index in range(1, len(pieces), 2):
        character = html.unescape(pieces[index])
        is_part_of_entity = bool(re.match(r"[#\w]{1,31};", pieces[index + 1]))
        if character == "&" and not is_part_of_entity:
            pieces[index] = "&"
        elif pieces[index].startswith("&") and character not in _NEED_ENTITIES:
            pieces[index] = " " if character.isspace() else character
    return "".join(pieces)
