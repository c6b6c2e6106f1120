"""Writes numbers and tables from results/ into the pages of the documentation.

    python -m benchmarks.figures            # rewrites the pages
    python -m benchmarks.figures --check    # changes nothing; fails where a page is out of date

benchmarks/README.md describes the markers and lists all names.
"""

import sys

from benchmarks.figures.pages import outdated, pages, rewrite
from tf_transformer.commands import command_line


def main(check: bool = False) -> None:
    """Renders all marked places of README.md, docs/ and the other pages from results/.

    Args:
        check: change no page; exit with status 1 when one differs from results/.
    """
    if check:
        if names := outdated():
            sys.exit(f"out of date: {', '.join(names)}; run python -m benchmarks.figures.")
        return
    for page in pages():
        if rewrite(page):
            print(f"rewrote {page}")


if __name__ == "__main__":
    command_line.run(main)
