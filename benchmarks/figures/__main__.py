"""Writes numbers and tables from benchmarks/results/ into the documentation.

    python -m benchmarks.figures            # rewrites the pages
    python -m benchmarks.figures --check    # changes nothing; fails where a page is out of date

benchmarks/README.md describes the markers and lists all names. `python -m research.figures` does
the same for the pages of research/.
"""

from benchmarks.figures.pages import front, update
from tf_transformer.commands import command_line


def main(check: bool = False) -> None:
    """Renders all marked places of README.md, docs/ and other pages, from benchmarks/results/.

    Args:
        check: change no page; exit with status 1 when a page differs from benchmarks/results/.
    """
    update(front(), "python -m benchmarks.figures", check)


if __name__ == "__main__":
    command_line.run(main)
