"""translate.py with documents of each format, with a small model."""

import pytest
from document_cases import CASES

from tf_transformer.commands import command_line, translate
from tf_transformer.documents import is_document

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["twenty-one", "three", "17"]


def run_command(*words):
    command_line.run(translate.main, [str(word) for word in words])


@pytest.mark.parametrize("ending", [x for x in CASES if is_document(f"in{x}")])
def test_each_format_is_translated(ending, run, tmp_path, capsys):
    make, texts_of, packages = CASES[ending]
    for package in packages:
        pytest.importorskip(package)
    source, target = tmp_path / f"in{ending}", tmp_path / "new" / f"out{ending}"
    source.write_bytes(make(TEXTS))
    run_command(source, "--run_dir", run, "--output", target, "--target_language", "de")
    (tmp_path / "lines").write_text("\n".join(TEXTS))
    run_command("--run_dir", run, "--input", tmp_path / "lines", "--output", tmp_path / "out")
    # The model sees the full stop of a cue, too.
    if ending != ".srt":
        one, two, _ = (tmp_path / "out").read_text().splitlines()
        assert texts_of(target.read_bytes()) == [one or TEXTS[0], two or TEXTS[1], TEXTS[2]]
    assert f"{target}: 2 texts translated" in capsys.readouterr().err
    assert not list(tmp_path.glob("**/*.partial"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected --output with the ending .json"),
        (["--output", "out.txt"], "expected --output with the ending .json"),
        (["--output", "in.json"], "is also an input of this command"),
        (["--output", "full.json"], "exists already"),
        (["--output", "o.json", "--resume"], "in.json is a document, and --resume needs lines"),
        (["--output", "o.json", "--prefixes", "p"], "a document, and --prefixes needs lines"),
    ],
)
def test_wrong_options_of_documents_are_errors(words, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = '{"a": "one"}'
    for name in ("in.json", "full.json"):
        (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit) as error:
        run_command("in.json", "--run_dir", run, *words)
    assert message in str(error.value.code)
    assert {path.name: path.read_text() for path in tmp_path.glob("*.json")} == {
        "in.json": content,
        "full.json": content,
    }


def test_options_of_documents_are_errors_for_lines(run):
    with pytest.raises(SystemExit) as error:
        run_command("--run_dir", run, "--target_language", "de")
    assert "are options of documents" in str(error.value.code)


def test_an_existing_document_is_replaced_if_allowed(run, tmp_path):
    for name in ("in.json", "out.json"):
        (tmp_path / name).write_text('{"a": "17"}')
    words = (tmp_path / "in.json", "--run_dir", run, "--output", tmp_path / "out.json")
    run_command(*words, "--overwrite")
    assert (tmp_path / "out.json").read_text() == '{"a": "17"}'
