"""Numbers on the pages are those of results/, and markers that cannot be filled are errors."""

import pytest

from benchmarks.figures import blocks, pages, values
from benchmarks.harness.results import read, result_names
from tf_transformer.errors import InputError

BOOK = pages.Book(
    [], {"table": lambda: "| a |\n| --- |"}, "names.md", {"run.bleu": "38.12"}.__getitem__
)


def test_pages_show_what_the_results_hold():
    assert pages.outdated(pages.front()) == [], "run python -m benchmarks.figures"


def test_marked_places_are_filled_and_nothing_else_changes():
    text = (
        "before\n\n<!-- figures:table -->\nold\n<!-- /figures -->\n\n"
        "BLEU is <!-- figure:run.bleu -->0<!-- /figure --> and "
        "<!-- figure:run.bleu --><!-- /figure -->; `<!-- figures:NAME -->` stays.\n"
    )
    expected = (
        "before\n\n<!-- figures:table -->\n\n| a |\n| --- |\n\n<!-- /figures -->\n\n"
        "BLEU is <!-- figure:run.bleu -->38.12<!-- /figure --> and "
        "<!-- figure:run.bleu -->38.12<!-- /figure -->; `<!-- figures:NAME -->` stays.\n"
    )
    page = pages.rendered(text, "a.md", BOOK)
    assert page == expected
    assert pages.rendered(page, "a.md", BOOK) == expected


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("22,108", "22,100"),
        ("0.0135854", "0.0136"),
        ("100.04", "100"),
        ("38.12", "38.12"),
        ("2,500,000", "2,500,000"),
        ("2026-11-23", "2026-11-23"),
        ("2.21.0", "2.21.0"),
    ],
)
def test_a_value_of_many_digits_is_rounded(exact, shown):
    book = BOOK._replace(value={"run.bleu": exact}.__getitem__)
    text = "x <!-- figure:run.bleu -->{}<!-- /figure -->"
    assert pages.rendered(text.format(""), "a.md", book) == text.format(shown)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<!-- figures:tables -->\n<!-- /figures -->", "a.md: unknown block figures:tables"),
        ("x <!-- figure:run.blue -->1<!-- /figure -->", "a.md: unknown value figure:run.blue"),
        ("x <!-- figure:run.bleu -->1", "a.md: <!-- figure:run.bleu --> has no end"),
        ("<!-- figures:table -->\nold", "a.md: <!-- figures:table --> has no end"),
        (
            "<!-- figures:table -->\n<!-- figures:table -->\n<!-- /figures -->",
            "<!-- figures:table --> has no end",
        ),
        (
            "x\n<!-- figure:run.bleu --><!-- /figure -->",
            "a.md, line 2: a value may not start a line",
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
    assert values.value(f"{name}.date") == result["date"]


def test_a_row_is_selected_by_its_key_fields():
    row = {"shape": "base", "system": "Keras' layers", "beam": 4, "batch": 1}
    assert values.place_of("decode", row) == "base.keras_layers.beam4.batch1"
    assert values.place_of("remat", {"remat": False}) == "no_remat"


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
    assert values.formatted(field, entry) == text


def test_a_check_fails_where_a_page_is_out_of_date(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "README.md"
    page.write_text("BLEU is <!-- figure:run.bleu -->0<!-- /figure -->")
    book = BOOK._replace(pages=[page])
    with pytest.raises(SystemExit, match=r"out of date: README\.md; run me"):
        pages.update(book, "me", check=True)
    pages.update(book, "me", check=False)
    pages.update(book, "me", check=True)
    assert ">38.12<" in page.read_text()
