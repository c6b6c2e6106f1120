"""tf-transformer inspect: its tables, its page, and its errors."""

import base64
import html
import re

import pytest
from html_checker import HtmlChecker

from tf_transformer.commands import inspect_corpora
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import Corpus, DataConfig
from tf_transformer.errors import InputError

PAIRS = [("A <b>house", "Ein Haus"), ("a dog runs", "a dog runs"), ("one", "eins"), ("", "leer")]


@pytest.fixture
def files(tmp_path):
    for side, place in (("en", 0), ("de", 1)):
        lines = "".join(f"{pair[place]}\n" for pair in PAIRS)
        (tmp_path / f"a.{side}").write_text(lines, "utf-8")
    return str(tmp_path / "a.en"), str(tmp_path / "a.de")


def test_it_prints_tables_and_writes_a_page_that_needs_nothing_else(files, tmp_path, capsys):
    page = tmp_path / "page.html"
    test = Corpus(*files)
    inspect_corpora.main(*files, test=test, output=str(page))
    shown = capsys.readouterr()
    rows = {line.split("  ")[0]: line.split()[-1] for line in shown.out.splitlines() if line}
    assert rows["tags"] == rows["identical"] == "%)"
    assert "1 (33 %)" in shown.out
    assert "1 empty text" in shown.out
    assert "no separate validation text" in shown.err
    written = page.read_text("utf-8")
    HtmlChecker.check(written)
    assert html.escape(PAIRS[0][0]) in written
    assert PAIRS[0][0] not in written
    assert "line 2 of " in written
    with pytest.raises(InputError, match="exists already"):
        inspect_corpora.main(*files, output=str(page))


def test_it_reads_the_corpora_of_a_run_and_of_a_training_configuration(
    run, files, tmp_path, capsys
):
    inspect_corpora.main(run_dir=str(run), output=str(tmp_path / "run.html"))
    assert "generated" in capsys.readouterr().out
    config = tmp_path / "train.yaml"
    config.write_text(
        f"data: {{train_source: {files[0]}, train_target: {files[1]}, held_out: 1}}\n"
        "model: {d_model: 16}\ntrain: {steps: 3}\ntask: translation\n"
    )
    options = read_options(inspect_corpora.main, ["--config", str(config)])
    assert options["data"].corpora == (Corpus(*files),)
    assert not {"model", "train", "task"} & options.keys()
    words = [*files, "--output", "x.html"]
    assert list(read_options(inspect_corpora.main, words)["files"]) == list(files)


@pytest.mark.parametrize("files", [(), ("a", "b", "c")])
def test_another_number_of_files_is_an_error(files):
    with pytest.raises(InputError, match="expected two files of parallel text, one file that"):
        inspect_corpora.main(*files)


def test_files_beside_other_corpora_are_an_error(files, run):
    with pytest.raises(InputError, match="one of them"):
        inspect_corpora.main(*files, run_dir=str(run))
    with pytest.raises(InputError, match="one of them"):
        inspect_corpora.main(*files, data=DataConfig(corpora=(Corpus(*files),)))


def test_the_page_has_two_charts_for_each_side(files, tmp_path):
    """The bars of the lengths: one text of one word, one of three, and one of two or three."""
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    inspect_corpora.main(*files, output=str(page))
    images = re.findall(r'alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"', page.read_text())
    assert [title.partition(":")[0] for title, _ in images] == ["source", "target"]
    source = base64.b64decode(images[0][1]).decode()
    assert source.count('<g id="bars">') == 3
