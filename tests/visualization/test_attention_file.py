"""Files of attention: from a command, by their suffix, of the first sentences."""

import io
import json
import sys

import matplotlib.image
import pytest

from tf_transformer.commands import translate
from tf_transformer.errors import InputError
from tf_transformer.inference.attention_record import read_json
from tf_transformer.visualization import attention_file

LINES = ["twenty-one", "", "two hundred"]


def written(run, folder, name, **options):
    """Translates the lines with a file of attention of this name."""
    (folder / "in").write_text("".join(f"{line}\n" for line in LINES), "utf-8")
    files = {"input": str(folder / "in"), "output": str(folder / "out")}
    translate.main(str(run), attention_output=str(folder / name), **files, **options)
    return folder / name


def test_a_page_and_the_translations_are_written(run, tmp_path):
    page = written(run, tmp_path, "page.html", window=2).read_text("utf-8")
    outputs = (tmp_path / "out").read_text("utf-8").split("\n")[:-1]
    blocks = page.split('<script type="application/json"')[1:]
    records = [json.loads(each.partition(">")[2].partition("</script>")[0]) for each in blocks]
    assert [record["text"] for record in records] == LINES
    assert [record["output"] for record in records] == outputs


def test_json_has_the_attention_of_given_translations(run, tmp_path):
    (tmp_path / "target").write_text("ein Haus\n\nx\n", "utf-8")
    path = written(run, tmp_path, "page.json", score_target=str(tmp_path / "target"))
    records = read_json(path.read_text("utf-8"))
    assert [record.output for record in records] == ["ein Haus", "", "x"]
    assert [each.kind for each in records[0].maps] == ["encoder", "decoder", "cross"]
    assert records[0].maps[2].queries.words == ["ein", "Haus", "</s>"]


def test_a_picture_shows_the_first_sentence(run, tmp_path, capsys):
    picture = written(run, tmp_path, "a.png").read_bytes()
    height, width, _ = matplotlib.image.imread(io.BytesIO(picture)).shape
    assert min(height, width) > 100
    assert f"{tmp_path / 'a.png'} has the attention of the first 1 of 3 lines." in (
        capsys.readouterr().err
    )


def test_a_page_has_a_limit_of_sentences(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(attention_file.MOST, ".json", 2)
    path = written(run, tmp_path, "page.json", window=1)
    assert [record.text for record in read_json(path.read_text("utf-8"))] == LINES[:2]
    assert "has the attention of the first 2 of 3 lines." in capsys.readouterr().err
    assert len((tmp_path / "out").read_text("utf-8").split("\n")) == 4


def test_without_lines_there_is_no_file(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LINES", [])
    assert not written(run, tmp_path, "page.html").exists()
    assert "page.html is not written: there is no line." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("page.pdf", {}, r"ends in .html, .json, .png, .svg for attention, got .*page.pdf"),
        ("in", {}, "ends in .html"),
        ("old.html", {}, "old.html exists already. Move it away"),
        ("a.html", {"resume": True}, "shows the first lines. Leave out --resume"),
    ],
)
def test_bad_options_are_found_before_any_work(tmp_path, name, options, message):
    """There is no run at all."""
    (tmp_path / "old.html").write_text("a page")
    with pytest.raises(InputError, match=message):
        written("no run", tmp_path, name, **options)


def test_a_picture_needs_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[plots\]'"):
        attention_file.AttentionFile(str(tmp_path / "a.svg"))


def test_a_run_without_attention_is_an_error(tmp_path):
    file = attention_file.AttentionFile(str(tmp_path / "a.html"))
    with pytest.raises(InputError, match=r"no attention to show\. Leave out --attention_output"):
        translate.LineStep(object(), [], 0, "", file)
