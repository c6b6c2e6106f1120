"""Tables on the pages are those of the result files, and unknown markers are errors."""

import pytest

from benchmarks.figures import blocks, pages
from benchmarks.harness.results import read, result_names
from benchmarks.harness.tables import formatted
from tf_transformer.errors import InputError

BOOK = pages.Book([], {"table": lambda: "| a |\n| --- |"})


def test_pages_show_what_the_results_hold():
    assert pages.outdated(pages.front()) == [], "run python -m benchmarks.figures"


def test_blocks_are_filled_and_nothing_else_changes():
    text = (
        "before\n\n<!-- figures:table -->\n{}<!-- /figures -->\n\n`<!-- figures:NAME -->` stays.\n"
    )
    page = pages.rendered(text.format("old\n"), "a.md", BOOK)
    assert page == text.format("\n| a |\n| --- |\n\n")
    assert pages.rendered(page, "a.md", BOOK) == page


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "<!-- figures:tables -->\n<!-- /figures -->",
            "a.md: unknown block figures:tables; .* one of table",
        ),
        ("<!-- figures:table -->\nold", "a.md: <!-- figures:table --> has no end"),
        (
            "<!-- figures:table -->\n<!-- figures:table -->\n<!-- /figures -->",
            "<!-- figures:table --> has no end",
        ),
    ],
)
def test_markers_that_cannot_be_filled_are_errors(text, error):
    with pytest.raises(InputError, match=error):
        pages.rendered(text, "a.md", BOOK)


@pytest.mark.parametrize("name", sorted(blocks.BLOCKS))
def test_every_block_renders(name):
    assert blocks.BLOCKS[name]().strip()


@pytest.mark.parametrize("name", result_names())
def test_every_result_names_its_circumstances(name):
    result = read(name)
    assert {"command", "machine", "date", "versions", "measurements"} <= result.keys()
    assert result["machine"].keys() == {"processor", "cores", "instruction_set", "memory"}


@pytest.mark.parametrize(
    ("field", "entry", "text"),
    [
        ("tokens_per_second", 8756.4, "8,756"),
        ("bleu", 38.1, "38.10"),
        ("padding", 0.0453, "4.53%"),
        ("training_seconds", 973, "16 min 13 s"),
        ("scores_within", 9e-6, "9e-6"),
        ("scores_within", 1.1e-5, "1.1e-5"),
        ("seconds", 0.76, "0.76"),
        ("pairs", 10_000_000, "10,000,000"),
        ("remat", True, "on"),
    ],
)
def test_numbers_are_written_as_a_reader_expects(field, entry, text):
    assert formatted(field, entry) == text


def test_a_check_fails_where_a_page_is_out_of_date(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "README.md"
    page.write_text("<!-- figures:table -->\nold\n<!-- /figures -->\n")
    book = BOOK._replace(pages=[page])
    with pytest.raises(SystemExit, match=r"out of date: README\.md; run me"):
        pages.update(book, "me", check=True)
    pages.update(book, "me", check=False)
    pages.update(book, "me", check=True)
    assert "| a |" in page.read_text()
