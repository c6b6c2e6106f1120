"""Numbers and plots on the pages of research/ are those of the results."""

import pytest

from benchmarks.figures import blocks as front
from benchmarks.figures import pages
from benchmarks.harness.results import FOLDERS, result_names
from research.figures import blocks, plots


def test_pages_show_what_the_results_hold():
    assert pages.outdated(blocks.book()) == [], "run python -m research.figures"


@pytest.mark.parametrize("name", sorted(blocks.BLOCKS.keys() - front.BLOCKS.keys()))
def test_every_block_renders(name):
    assert blocks.BLOCKS[name]().strip()


@pytest.mark.parametrize("name", sorted(plots.PLOTS))
def test_every_plot_is_drawn_and_shown(name, tmp_path):
    assert plots.draw(name, tmp_path / "plot.svg").stat().st_size > 0
    texts = [page.read_text("utf-8") for page in blocks.book().pages]
    assert any(f"images/{name}.svg" in text for text in texts)
    assert (plots.FOLDER / f"{name}.svg").is_file()


def test_every_result_is_on_a_page():
    """A result that no page shows, and no source of it, is of no use to a reader."""
    pages_of_all = (*blocks.book().pages, *pages.front().pages)
    texts = "".join(page.read_text("utf-8") for page in pages_of_all)
    shown = [name for name in result_names(FOLDERS[1]) if f"figures:{name}.source" in texts]
    assert shown == result_names(FOLDERS[1])
