"""Finds the marked places of a page and fills them.

A block stands on lines of its own; its content is Markdown, mostly a table:

    <!-- figures:NAME -->
    <!-- /figures -->

A value stands within a line, but not at its start: Markdown takes such a line as HTML.

    BLEU is <!-- figure:NAME.KEY --><!-- /figure -->.
"""

import pathlib
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from benchmarks.figures.blocks import BLOCKS, Renderer
from benchmarks.figures.values import value
from tf_transformer.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]

# Names are in lower case, so that a page can describe the markers with NAME and KEY.
_BLOCK = re.compile(
    r"^<!-- figures:([a-z0-9_.]+) -->\n(?:(?!<!-- figures:).)*?^<!-- /figures -->$",
    re.DOTALL | re.MULTILINE,
)
_VALUE = re.compile(r"(<!-- figure:([a-z0-9_.]+) -->)[^<]*<!-- /figure -->")
_OPENING = re.compile(r"<!-- figures?:[a-z0-9_.]+ -->")
_MARKED_LINE = re.compile(r"^ *<!-- figure:", re.MULTILINE)


class Sources(NamedTuple):
    """Where the content of marked places comes from.

    Attributes:
        blocks: a renderer for each name.
        value: gives the text for a name with its key; raises KeyError for an unknown one.
    """

    blocks: Mapping[str, Renderer]
    value: Callable[[str], str]


RESULTS = Sources(BLOCKS, value)


def pages() -> list[pathlib.Path]:
    """All pages that may have marked places."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted(ROOT.glob("docs/**/*.md")),
        *sorted(ROOT.glob("pretrained/*/README.md")),
        ROOT / "benchmarks" / "README.md",
    ]


def outdated() -> list[str]:
    """The pages that differ from the results."""
    return [
        str(page.relative_to(ROOT))
        for page in pages()
        if rendered(page.read_text("utf-8"), page.name) != page.read_text("utf-8")
    ]


def rewrite(page: pathlib.Path) -> bool:
    """Brings a page up to date.

    Returns:
        whether it changed.
    """
    text = page.read_text("utf-8")
    new = rendered(text, page.name)
    if new != text:
        page.write_text(new, "utf-8")
    return new != text


def rendered(text: str, page: str, sources: Sources = RESULTS) -> str:
    """The text with all marked places filled.

    Raises:
        InputError: for a name without a result, a marker without its end, or a value at the
            start of a line.
    """
    if found := _MARKED_LINE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(
            f"{page}, line {line}: a value may not start a line; move a word before it."
        )

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name not in sources.blocks:
            raise InputError(
                f"{page}: unknown block figures:{name}; benchmarks/README.md lists all."
            )
        return f"<!-- figures:{name} -->\n\n{sources.blocks[name]()}\n\n<!-- /figures -->"

    def inline(match: re.Match[str]) -> str:
        try:
            return f"{match[1]}{sources.value(match[2])}<!-- /figure -->"
        except KeyError:
            raise InputError(
                f"{page}: unknown value figure:{match[2]}; benchmarks/README.md lists all."
            ) from None

    if alone := _OPENING.search(_VALUE.sub("", _BLOCK.sub("", text))):
        raise InputError(f"{page}: {alone[0]} has no end.")
    return _BLOCK.sub(block, _VALUE.sub(inline, text))
