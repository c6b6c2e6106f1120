"""Writes numbers, tables and plots from results/ into the documentation.

    python -m benchmarks.figures            # rewrites the pages
    python -m benchmarks.figures --check    # changes nothing; fails where a page is out of date

benchmarks/README.md describes the markers and lists all names.
"""

import sys

from benchmarks.figures.pages import outdated, pages, rewrite
from tf_transformer.commands import command_line


def main(check: bool = False) -> None:
    """Renders all plots, and all marked places of README.md, docs/ and other pages, from results/.

    Args:
        check: change no page; exit with status 1 when one differs from results/.
    """
    if check:
        if names := outdated():
            sys.exit(f"out of date: {', '.join(names)}; run python -m benchmarks.figures.")
        return
    from benchmarks.figures.plots import draw_all  # needs matplotlib

    for image in draw_all():
        print(f"drew {image}")
    for page in pages():
        if rewrite(page):
            print(f"rewrote {page}")


if __name__ == "__main__":
    command_line.run(main)
