"""Divides a text into the parts that a model translates, and joins their translations."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tf_transformer.documents.document import Options, texts_of, with_translations
from tf_transformer.documents.html_page import BLOCKS, Rules, read_html
from tf_transformer.serving.requests import require

KEEP_TAGS = "Give --keep common to the command that serves its run, or that exports it."


class Divided(NamedTuple):
    """The parts of a text, and a function from their translations to the text with them."""

    parts: Sequence[str]
    join: Callable[[Sequence[str]], str]


Format = Callable[[str], Divided]
"""How texts are divided."""


def lines_of(text: str) -> Divided:
    r"""The lines of a text, without the white space around them.

    Example:
        >>> divided = lines_of("One.\n\n  Two.\n")
        >>> divided.parts
        ['One.', 'Two.']
        >>> divided.join(["Eins.", "Zwei."])
        'Eins.\n\n  Zwei.\n'
    """
    parts, around = [], [""]
    for line in text.splitlines(keepends=True):
        if content := line.strip():
            start, _, end = line.partition(content)
            parts.append(content)
            around[-1] += start
            around.append(end)
        else:
            around[-1] += line

    def join(translations: Sequence[str]) -> str:
        pairs = itertools.zip_longest(around, translations, fillvalue="")
        return "".join(itertools.chain.from_iterable(pairs))

    return Divided(parts, join)


def markup(rules: Rules) -> Format:
    """The format of HTML or XML. A text whose translation lost a tag of it is refused.

    Example:
        >>> divided = markup(Rules({"p"}))("<p>Caf&eacute; <i>A</i> &lt; B</p>")
        >>> divided.parts
        ['Café <a>A</a> < B']
        >>> divided.join(["Das Café <a>A</a> < B"])
        '<p>Das Café <i>A</i> &lt; B</p>'
    """

    def divide(text: str) -> Divided:
        document = read_html(text, Options(), rules)
        parts = texts_of(document)

        def join(translations: Sequence[str]) -> str:
            content, lost = with_translations(document, parts, translations)
            message = f"The translation does not have the tags of the text. {KEEP_TAGS}"
            require(not lost, message, status=502)
            return content.decode()

        return Divided(parts, join)

    return divide


HTML_RULES = Rules(BLOCKS | {"br"}, has_attributes=False)
XML_RULES = Rules(frozenset(), frozenset(), has_attributes=False, is_xml=True)
HTML = markup(HTML_RULES)
