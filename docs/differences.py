"""Writes docs/paper/differences.md, the differences from the papers: python -m docs.differences.

Each stands in the code as a comment, `# Differs from the paper: ...`, or with a name in place of
*the paper*.
"""

import ast
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tf_transformer"
PAGE = pathlib.Path(__file__).parent / "paper" / "differences.md"
PAPER = "the paper"
INTRODUCTION = """\
# Differences from the paper

<!-- Written by `python -m docs.differences` from comments of the code. Do not edit. -->

This page lists where the code differs from *Attention Is All You Need*, and from the papers of
other layers. Each difference is a comment beside the code, `# Differs from the paper: ...`.
"""


class Difference(NamedTuple):
    """A comment of the code."""

    file: str  # path in the repository
    place: str  # class, function or constant; empty for a module
    source: str  # the paper, or the name of another one
    text: str


def page() -> str:
    """The whole page."""
    files = sorted(PACKAGE.rglob("*.py"))
    differences = [
        difference
        for file in files
        for difference in differences_in(file.read_text("utf-8"), file.relative_to(ROOT).as_posix())
    ]
    sources = sorted({x.source for x in differences}, key=lambda name: (name != PAPER, name))
    parts = [INTRODUCTION]
    for source in sources:
        title = "Attention Is All You Need" if source == PAPER else source
        rows = (_row(x) for x in differences if x.source == source)
        parts.append(f"## {title}\n\n| place | difference |\n|---|---|\n{''.join(rows)}")
    return "\n".join(parts)


def differences_in(code: str, file: str) -> Iterator[Difference]:
    """The differences that the comments of a file name, in its order."""
    lines = code.splitlines()
    tree = ast.parse(code)
    for number, line in enumerate(lines, 1):
        if not (start := re.match(r"\s*# Differs from ([^:]+): ", line)):
            continue
        last = number
        while last < len(lines) and lines[last].lstrip().startswith("#"):
            last += 1
        first, *rest = line[start.end() :], *lines[number:last]
        text = " ".join([first, *(more.strip().removeprefix("# ") for more in rest)])
        yield Difference(file, _place(tree, last + 1), start[1], text[:1].upper() + text[1:])


def _place(tree: ast.AST, line: int) -> str:
    """The dotted name of the class and function around a line, or of the constant in the line."""
    for node in ast.iter_child_nodes(tree):
        first = getattr(node, "lineno", 0)
        if not first <= line <= (getattr(node, "end_lineno", None) or 0):
            continue
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            return f"{node.name}.{_place(node, line)}".rstrip(".")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            return ast.unparse(target) if isinstance(tree, ast.Module) else ""
    return ""


def _row(difference: Difference) -> str:
    place = f" `{difference.place}`" if difference.place else ""
    link = f"[`{difference.file}`](../../{difference.file})"
    text = difference.text.replace("|", "\\|")
    return f"| {link}{place} | {text} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
