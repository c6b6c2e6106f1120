"""The programs in examples/."""

import io
import json
import os
import pathlib
import runpy
import subprocess
import sys

import keras
import numpy as np
import pytest

from tf_transformer.data.readers.generated import FIRST_DAY, date_in_words, number_in_words
from tf_transformer.inference.translator import Translator
from tf_transformer.text.tokenizer import Tokenizer

ROOT = pathlib.Path(__file__).parents[1]
LINES = ["one", "", "a\rb", "two\u2028three\x85four", "  ", "broken \ufffd", "last " * 30]


@pytest.mark.slow
def test_beam_gives_the_translations_of_the_run_in_order(run, tmp_path):
    """Blocks have four lines, so the order must be restored, and batches mix lengths."""
    pytest.importorskip("apache_beam")
    translator = Translator.from_run(run)
    translator.save(tmp_path / "model")
    numbers = (run / "samples.txt").read_text("utf-8").splitlines()
    text = "\n".join([*numbers, *LINES]).encode().replace("\ufffd".encode(), b"\xff")
    (tmp_path / "in").write_bytes(text)
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    process = subprocess.run(
        [
            *(sys.executable, "examples/beam_translate.py", "--block", "4"),
            *map(str, ("--saved_model", tmp_path / "model", *files)),
        ],
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()
    found = (tmp_path / "out").read_text("utf-8").split("\n")
    expected = [translation.text for translation in translator([*numbers, *LINES])]
    assert found == [*(text.replace("\n", " ") for text in expected), ""]
    assert {path.name for path in tmp_path.iterdir()} == {"model", "in", "out"}


@pytest.mark.slow
def test_beam_names_a_missing_file(tmp_path):
    pytest.importorskip("apache_beam")
    words = ["--saved_model", tmp_path, "--input", tmp_path / "missing", "--output", "x"]
    process = subprocess.run(
        [sys.executable, "examples/beam_translate.py", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert process.returncode == 2
    assert f"{tmp_path / 'missing'} does not exist. Check the path." in process.stderr.decode()


def test_a_missing_package_is_named(tmp_path):
    """A package that cannot be imported stands first on the path."""
    package = "apache_beam"
    message = f"raise ModuleNotFoundError(name={package!r})"
    (tmp_path / f"{package}.py").write_text(message)
    process = subprocess.run(
        [sys.executable, "examples/beam_translate.py", "--help"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: {package} is not installed: pip install")


def run_example(monkeypatch, name, *words):
    """Runs an example in this process, to save the import of TensorFlow."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


def write_labelled(path, text):
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("start", [[], ["--from_scratch"]], ids=["run's encoder", "random"])
def test_classify_learns_and_saves_a_classifier(run, start, tmp_path, monkeypatch, capsys):
    """Held-out dates and numbers, half of each: chance is 50%."""
    lines = [f"number\t{number_in_words(n, 'en')}" for n in range(100, 160)]
    lines += [f"date\t{date_in_words(FIRST_DAY.replace(day=d), 'en')}" for d in range(1, 31)] * 2
    data = write_labelled(tmp_path / "labelled.tsv", "\n".join(lines))
    saved = tmp_path / "classifier.keras"
    options = ("--data", data, "--save", saved, "--epochs", 8, "--learning_rate", 0.01)
    run_example(monkeypatch, "classify.py", "--run_dir", run, *options, *start)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["labels"] == ["date", "number"]
    assert result["held_out"] == 25
    assert result["accuracy"] > 0.9
    assert {path.name for path in tmp_path.iterdir()} == {"labelled.tsv", "classifier.keras"}
    # The saved file classifies texts, with and without padding.
    tokenizer = Tokenizer.load(run / "tokenizer.model")
    classifier = keras.saving.load_model(saved)
    for text, label in (("one hundred and twelve", 1), ("January third, nineteen hundred", 0)):
        ids = tokenizer.encode(text)
        bare, padded = (classifier(np.array([row])).numpy() for row in (ids, [*ids, 0, 0, 0]))
        assert bare.argmax() == label
        np.testing.assert_allclose(padded, bare, atol=1e-4)


def test_classify_without_data_makes_texts(run, monkeypatch, capsys):
    words = ("--run_dir", run, "--examples", 40, "--epochs", 1)
    run_example(monkeypatch, "classify.py", *words)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["labels"] == [str(digit) for digit in range(10)]
    assert result["held_out"] == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tone\nb two\n", "line 2 of {path} has no tab. Expected label<TAB>text."),
        ("a\tone\na\ttwo\n", "{path} has only one label. Give examples of at least two labels."),
    ],
)
def test_classify_reports_errors_in_a_file(run, text, message, tmp_path, monkeypatch):
    path = write_labelled(tmp_path / "labelled.tsv", text)
    with pytest.raises(SystemExit) as exit_:
        run_example(monkeypatch, "classify.py", "--run_dir", run, "--data", path)
    assert exit_.value.code == "error: " + message.format(path=path)


def test_classify_refuses_a_file_that_keras_cannot_save(run, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        run_example(monkeypatch, "classify.py", "--run_dir", run, "--save", "model.h5")
    assert "--save must end in .keras, got model.h5." in capsys.readouterr().err


def test_keras_pipeline_keeps_confident_translations(exported, served, monkeypatch, capsysbinary):
    lines = ["one", "twenty-one", "", "two\u2028three\x85four", "last " * 30, "nul\0in it"]
    expected = exported(lines)
    middle = np.exp(np.median([translation.score for translation in expected[:2]]))
    text = ("\n".join(lines) + "\n").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    words = ("--saved_model", served, "--at_least", middle, "--batch_size", 4)
    run_example(monkeypatch, "keras_pipeline.py", *words)
    kept = [
        f"{line}\t{found.text}".replace("\n", " ")
        for line, found in zip(lines, expected, strict=True)
        if np.exp(found.score) >= middle
    ]
    assert 0 < len(kept) < len(lines)
    assert capsysbinary.readouterr().out.decode() == "\n".join([*kept, ""])


def test_keras_pipeline_is_a_functional_model_on_strings(exported, served):
    pipeline = runpy.run_path(str(ROOT / "examples" / "keras_pipeline.py"))["pipeline"]
    model = pipeline(str(served), at_least=0.5)
    assert not model.trainable_weights
    lines = ["one", "", "twenty-one"]
    found = model.predict(np.array(lines, object), verbose=0)
    expected = exported(lines)
    assert [text.decode() for text in found["translation"]] == [e.text for e in expected]
    confidence = np.exp([e.score for e in expected])
    np.testing.assert_allclose(found["confidence"], confidence, rtol=1e-4)
    np.testing.assert_array_equal(found["kept"], confidence >= 0.5)


def test_keras_pipeline_names_a_missing_model(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        run_example(monkeypatch, "keras_pipeline.py", "--saved_model", tmp_path)
    expected = f"{tmp_path} is not a SavedModel. Make one: python -m export."
    assert expected in " ".join(capsys.readouterr().err.split())
