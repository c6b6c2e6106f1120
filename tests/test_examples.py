"""The examples do what they say."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
LINES = ["one", "", "a\rb", "two\u2028three\x85four", "  ", "broken \ufffd", "last " * 30]


def test_beam_gives_what_the_run_gives_a_line_for_a_line(run, tmp_path):
    """Blocks of four lines, so that order has to be restored, and batches of unlike length."""
    pytest.importorskip("apache_beam")
    from tf_transformer.translator import Translator

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


def test_beam_names_what_is_missing(tmp_path):
    pytest.importorskip("apache_beam")
    words = ["--saved_model", tmp_path, "--input", tmp_path / "missing", "--output", "x"]
    process = subprocess.run(
        [sys.executable, "examples/beam_translate.py", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert process.returncode == 2
    assert f"there is no {tmp_path / 'missing'}. Check the path." in process.stderr.decode()
