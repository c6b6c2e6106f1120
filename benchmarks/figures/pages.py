"""Finds the marked blocks of a page and fills them with Markdown, mostly tables.

A page marks a block by two lines:

    <!-- figures:NAME -->
    <!-- /figures -->
"""

import pathlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures.blocks import BLOCKS
from benchmarks.figures.rendering import Renderer
from benchmarks.harness.results import ROOT
from tf_transformer.errors import InputError

# Names are in lower case, so that a page can describe the markers with NAME.
_BLOCK = re.compile(
    r"^<!-- figures:([a-z0-9_.]+) -->\n(?:(?!<!-- figures:).)*?^<!-- /figures -->$",
    re.DOTALL | re.MULTILINE,
)
_OPENING = re.compile(r"<!-- figures:[a-z0-9_.]+ -->")


class Book(NamedTuple):
    """Pages, and the sources of their blocks.

    Attributes:
        pages: pages that may have blocks.
        blocks: a renderer for each name.
    """

    pages: Sequence[pathlib.Path]
    blocks: Mapping[str, Renderer]


def front() -> Book:
    """The pages of the project and its benchmarks."""
    globs = ("*.md", "docs/**/*.md", "pretrained/*/README.md", "benchmarks/README.md")
    return Book([page for pattern in globs for page in sorted(ROOT.glob(pattern))], BLOCKS)


def outdated(book: Book) -> list[str]:
    """The pages that differ from the results."""
    return [
        str(page.relative_to(ROOT))
        for page in book.pages
        if rendered(page.read_text("utf-8"), page.name, book) != page.read_text("utf-8")
    ]


def update(book: Book, command: str, check: bool) -> None:
    """Brings all pages up to date, or checks that they are.

    Args:
        book: the pages.
        command: the command that brings the pages up to date, for the message of a check.
        check: change nothing; exit with status 1 when a page differs from the results.
    """
    if not check:
        for page in book.pages:
            if rewrite(page, book):
                print(f"rewrote {page}")
    elif names := outdated(book):
        sys.exit(f"out of date: {', '.join(names)}; run {command}.")


def rewrite(page: pathlib.Path, book: Book) -> bool:
    """Brings a page up to date.

    Returns:
        whether it changed.
    """
    text = page.read_text("utf-8")
    new = rendered(text, page.name, book)
    if new != text:
        page.write_text(new, "utf-8")
    return new != text


def rendered(text: str, page: str, book: Book) -> str:
    """The text with all blocks filled.

    Raises:
        InputError: for a name without a result, or a marker without its end.
    """

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name not in book.blocks:
            raise InputError(
                f"{page}: unknown block figures:{name}; expected one of {', '.join(book.blocks)}."
            )
        return f"<!-- figures:{name} -->\n\n{book.blocks[name]()}\n\n<!-- /figures -->"

    if alone := _OPENING.search(_BLOCK.sub("", text)):
        raise InputError(f"{page}: {alone[0]} has no end.")
    return _BLOCK.sub(block, text)
