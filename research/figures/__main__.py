"""Writes numbers, tables and plots from research/results/ into the pages of research/.

    python -m research.figures            # rewrites the pages, draws the plots
    python -m research.figures --check    # changes nothing; fails where a page is out of date

benchmarks/README.md describes the markers.
"""

from benchmarks.figures.pages import update
from research.figures.blocks import book
from tf_transformer.commands import command_line


def main(check: bool = False) -> None:
    """Draws all plots and renders all marked places of the pages of research/.

    Args:
        check: change nothing; exit with status 1 when a page differs from the results.
    """
    update(book(), "python -m research.figures", check)
    if not check:
        from research.figures.plots import draw_all  # needs matplotlib

        for image in draw_all():
            print(f"drew {image}")


if __name__ == "__main__":
    command_line.run(main)
