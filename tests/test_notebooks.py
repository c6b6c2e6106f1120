"""The notebooks: each runs with small sizes, and shows results that are right."""

import base64
import json
import os
import pathlib
import re
import subprocess

import nbformat
import pytest

pytest.importorskip("nbclient")

from docs import notebooks
from tf_transformer.inference.translator import Translator

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[1]
SMALL_MODEL = (
    "--model.num_layers 1 --model.d_model 16 --model.d_ff 32 --model.num_heads 2 "
    "--data.vocabulary_size 320 --data.batch_tokens 500 --data.held_out 20 "
    "--train.steps 6 --train.validate_every 3 --train.valid_score_examples 0 "
    "--train.threads 2 --decode.beam_size 1 --decode.max_length 20 "
    "--decode.max_source_length 50"
)


def read(name):
    return nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)


def executed(name, parameters=""):
    """(printed lines by a text in the source of their cell, all pictures) of an execution."""
    cells = [c for c in notebooks.execute(name, parameters).cells if c.cell_type == "code"]
    outputs = [(cell.source, output) for cell in cells for output in cell.outputs]

    def lines(text):
        (found,) = (o.text for source, o in outputs if text in source and o.get("name") == "stdout")
        return found.replace("\r\n", "\n").splitlines()

    data = [output.data for _, output in outputs if "data" in output]
    pictures = [base64.b64decode(each["image/png"]) for each in data if "image/png" in each]
    return lines, pictures


def sizes(pictures):
    """(width, height) of PNG files, from their headers."""
    assert all(picture[1:4] == b"PNG" for picture in pictures)
    numbers = [(picture[16:20], picture[20:24]) for picture in pictures]
    return [tuple(int.from_bytes(number, "big") for number in pair) for pair in numbers]


def test_two_files_become_a_served_model(tmp_path):
    parameters = f"FOLDER, PAIRS, TEST_PAIRS, OPTIONS = {str(tmp_path)!r}, 200, 10, {SMALL_MODEL!r}"
    lines, pictures = executed("two_files_to_a_served_model", parameters)
    assert len((tmp_path / "train.de").read_text("utf-8").splitlines()) == 200
    assert [line for line in lines("train.py") if line.startswith("trained 6 updates")]
    assert len(sizes(pictures)) == 1  # the curves
    scores = json.loads(lines("evaluate.py")[-1])
    assert scores.keys() >= {"bleu", "signature", "chrf", "exact_match"}
    assert scores["sentences"] == 10
    assert lines("-m export")[-1].startswith(f"exported {tmp_path}/served/numbers/1: ")
    # The served model gives the translations of the run.
    served = [json.loads(line)["translation"] for line in lines("run_in_session.py")]
    assert served == lines("translate.py")
    assert len(served) == 3


def test_the_code_gives_the_numbers_of_the_paper():
    lines, pictures = executed("the_paper_in_code")
    assert "    weights = softmax(masked(scores, mask, bias), scores.dtype)" in lines(
        "inspect.getsource"
    )
    names = ("form.__name__", "SelfAttention", "FeedForward", "token_losses")
    compared = [line for name in names for line in lines(name) if "difference" in line]
    assert len(compared) == 5
    assert all(float(line.rpartition(" ")[2]) < 1e-5 for line in compared)
    assert lines("causal_mask")[-1] == "changed outputs: [4, 5]"
    plain, scaled = zip(*(re.findall(r"0\.\d+", line) for line in lines("in (4, 64")), strict=True)
    assert sorted(plain) == list(plain)
    assert float(plain[-1]) > 0.9 > 0.4 > float(scaled[-1])
    losses = [float(line.rpartition(" ")[2]) for line in lines("confidence in")]
    assert min(losses) == losses[2]  # 1 - 0.1 + 0.1 / 7 = 0.914: the smoothed target
    _, *words = lines("n_best")[0].split()
    assert words[:2] + words[3:7] == ["Mein", "Bruder", "in", "einem", "kleinen", "Haus"]
    assert lines("attention_picture") == [
        f"layers, heads, predicted words, source words: (4, 4, {len(words) + 1}, 11)"
    ]
    assert len(sizes(pictures)) == 3  # positions, schedule, attention


def test_layers_models_and_exports_work_in_keras(run, tmp_path):
    parameters = (
        f"RUN, FOLDER = {str(run)!r}, {str(tmp_path)!r}\n"
        "LAYER_EPOCHS, MODEL_EPOCHS, CLASSIFIER_EPOCHS, TEXTS = 3, 4, 12, 600"
    )
    lines, _ = executed("inside_a_keras_pipeline", parameters)

    def last(cell):
        """The last value of each metric."""
        return {
            line.partition(":")[0]: float(line.rpartition(" ")[2])
            for line in lines(cell)
            if "->" in line
        }

    assert last("LAYER_EPOCHS, verbose")["accuracy"] > 0.9  # of two classes
    assert last("MODEL_EPOCHS, verbose")["accuracy"] > 0.8  # of ten digits
    assert last("fit(\n")["val_accuracy"] > 0.2  # of ten classes, with a small encoder
    assert lines("load_model")[0] == "equal logits: True"
    rows = [line.split("  |  ") for line in lines("TFSMLayer")]
    expected = Translator.from_run(run, beam_size=2)([source for source, *_ in rows])
    assert [translation for _, translation, _ in rows] == [each.text for each in expected]
    assert len(rows) == 3


@pytest.mark.parametrize("name", notebooks.names())
def test_stored_notebooks_are_complete_and_small(name):
    cells = read(name).cells
    assert [
        cell.source for cell in cells if cell.cell_type == "code" and not cell.execution_count
    ] == []
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [
        each for each in outputs if each.output_type == "error" or each.get("name") == "stderr"
    ]
    assert (notebooks.FOLDER / f"{name}.ipynb").stat().st_size < 250_000


@pytest.mark.parametrize("name", notebooks.names())
def test_files_that_notebooks_name_exist(name):
    text = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert "://" in target or (notebooks.FOLDER / target).exists(), target
    for path in re.findall(r"`([\w/]+\.(?:py|md|yaml)|\w+/)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", notebooks.names())
def test_outside_of_a_clone_the_repository_is_cloned_and_installed(name, tmp_path, monkeypatch):
    """The first cell, with its commands recorded instead of run."""
    commands = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.setattr("importlib.metadata.distributions", lambda name: [])
    monkeypatch.setattr("builtins.input", lambda prompt: "https://example.org/repository")

    def run(command, check):
        commands.append(command[1:])
        (tmp_path / "tf_transformer").mkdir(exist_ok=True)

    monkeypatch.setattr(subprocess, "run", run)
    exec(next(cell.source for cell in read(name).cells if cell.cell_type == "code"), {})
    clone = str(tmp_path / "tf_transformer")
    assert commands == [
        ["clone", "--depth", "1", "https://example.org/repository", clone],
        ["-m", "pip", "install", "--quiet", f"{clone}[plots]"],
    ]
    assert pathlib.Path.cwd() == tmp_path / "tf_transformer"


def test_there_is_a_notebook_for_each_reader():
    assert len(notebooks.names()) == 3
