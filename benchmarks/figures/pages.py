"""Finds the marked places of a page and fills them.

A block stands on separate lines; its content is Markdown, mostly a table:

    <!-- figures:NAME -->
    <!-- /figures -->

A value stands within a line, after a word: Markdown reads a line that starts with it as HTML.

    BLEU is <!-- figure:NAME.KEY --><!-- /figure -->.

A value with more than four digits is rounded to three digits. The blocks have exact values.
"""

import pathlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures.blocks import BLOCKS
from benchmarks.figures.rendering import Renderer
from benchmarks.figures.values import value
from benchmarks.harness.results import ROOT
from tf_transformer.errors import InputError

# Names are in lower case, so that a page can describe the markers with NAME and KEY.
_BLOCK = re.compile(
    r"^<!-- figures:([a-z0-9_.]+) -->\n(?:(?!<!-- figures:).)*?^<!-- /figures -->$",
    re.DOTALL | re.MULTILINE,
)
_VALUE = re.compile(r"(<!-- figure:([a-z0-9_.]+) -->)[^<]*<!-- /figure -->")
_OPENING = re.compile(r"<!-- figures?:[a-z0-9_.]+ -->")
_MARKED_LINE = re.compile(r"^ *<!-- figure:", re.MULTILINE)


class Book(NamedTuple):
    """Pages, and the sources of their marked places.

    Attributes:
        pages: pages that may have marked places.
        blocks: a renderer for each name.
        names: the page that lists all names, for error messages.
        value: function from a name with its key to a text; raises KeyError for an unknown name.
    """

    pages: Sequence[pathlib.Path]
    blocks: Mapping[str, Renderer]
    names: str
    value: Callable[[str], str] = value


def front() -> Book:
    """The pages of the project and its benchmarks."""
    names = ROOT / "benchmarks" / "README.md"
    globs = ("*.md", "docs/**/*.md", "pretrained/*/README.md")
    pages = [page for pattern in globs for page in sorted(ROOT.glob(pattern))]
    return Book([*pages, names], BLOCKS, "benchmarks/README.md")


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
    """The text with all marked places filled.

    Raises:
        InputError: for a name without a result, a marker without its end, or a value at the
            start of a line.
    """
    if at_start := _MARKED_LINE.search(text):
        line = text.count("\n", 0, at_start.start()) + 1
        raise InputError(
            f"{page}, line {line}: a value may not start a line; move a word before it."
        )

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name not in book.blocks:
            raise InputError(f"{page}: unknown block figures:{name}; {book.names} lists all.")
        return f"<!-- figures:{name} -->\n\n{book.blocks[name]()}\n\n<!-- /figures -->"

    def inline(match: re.Match[str]) -> str:
        try:
            return f"{match[1]}{_rounded(book.value(match[2]))}<!-- /figure -->"
        except KeyError:
            raise InputError(
                f"{page}: unknown value figure:{match[2]}; {book.names} lists all."
            ) from None

    if alone := _OPENING.search(_VALUE.sub("", _BLOCK.sub("", text))):
        raise InputError(f"{page}: {alone[0]} has no end.")
    return _BLOCK.sub(block, _VALUE.sub(inline, text))


def _rounded(text: str) -> str:
    """A number of more than four digits with three of them, such as 22,100 for 22,108."""
    if not re.fullmatch(r"\d[\d,]*(\.\d+)?", text):
        return text
    if len(re.sub("[.,]", "", text).lstrip("0")) <= 4:
        return text
    number = float(f"{float(text.replace(',', '')):.3g}")
    return f"{number:,.0f}" if number >= 100 else f"{number:g}"
