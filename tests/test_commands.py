"""The commands, as a user types them: each in a process of its own."""

import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def command(*words, stdin=b"", check=True):
    process = subprocess.run(
        [sys.executable, *map(str, words)],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    if check:
        assert process.returncode == 0, process.stderr.decode()
    return process


def error_of(*words) -> str:
    process = command(*words, check=False)
    assert process.returncode in (1, 2), process.stderr.decode()
    message = process.stderr.decode()
    assert "Traceback" not in message
    return message


@pytest.fixture(scope="session")
def own_files(tmp_path_factory):
    """Two small files of a user's own, and the run that train.py makes of them by default."""
    folder = tmp_path_factory.mktemp("own")
    words = ["red", "green", "blue", "old", "new"]
    things = ["house", "car", "tree", "dog", "book", "street"]
    lines = [f"the {a} {b} {c}" for a in words for b in words for c in things]
    (folder / "a.en").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "b.de").write_text("".join(f"{line.upper()} ß\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="session")
def own_run(own_files):
    run = own_files / "run"
    files = ("--data.train_source", own_files / "a.en", "--data.train_target", own_files / "b.de")
    command("train.py", "--run_dir", run, *files)
    return run


@pytest.fixture(scope="session")
def saved_model(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "small" / "1"
    command("-m", "export", "--run_dir", run, "--to", path)
    return path


def test_two_files_and_no_other_option_train_validate_and_export(own_files, own_run):
    last = json.loads((own_run / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"val_loss", "val_bleu"} <= last.keys()
    command("-m", "export", "--run_dir", own_run, "--to", own_files / "served" / "1")
    assert (own_files / "served" / "1" / "saved_model.pb").is_file()


def test_evaluate_ends_with_one_json_object(own_files, own_run):
    files = ("--source", own_files / "a.en", "--reference", own_files / "b.de")
    printed = command("evaluate.py", "--run_dir", own_run, *files, "--beam_size", 2).stdout
    result = json.loads(printed.decode().strip().split("\n")[-1])
    assert {"bleu", "signature", "chrf"} <= result.keys()
    assert "tok:13a" in result["signature"]
    assert result["sentences"] == 150


def test_evaluate_a_generated_run_on_its_own_test_pairs(run):
    result = json.loads(
        command("evaluate.py", "--run_dir", run, "--beam_size", 1).stdout.splitlines()[-1]
    )
    assert result["sentences"] == 1000
    assert 0 <= result["exact_match"] <= 100


def test_translate_gives_a_line_for_a_line(run):
    odd = "one\n\n  \ntwo\u2028three\x85four\n\ufeff\r\nbroken ".encode() + b"\xff\xfe\nlast"
    printed = command("translate.py", "--run_dir", run, stdin=odd).stdout
    assert printed.count(b"\n") == odd.count(b"\n") + 1
    assert printed.split(b"\n")[1:3] == [b"", b""]
    assert command("translate.py", "--run_dir", run, stdin=b"").stdout == b""


def test_the_saved_model_translates_in_a_session_as_translate_does(run, saved_model):
    """The session's process imports tensorflow and tensorflow_text, and none of this project."""
    lines = b"one\n\ntwenty-one\nJune twelfth, twenty seventeen\n"
    served = command("export/run_in_session.py", saved_model, stdin=lines).stdout.decode()
    translations = [json.loads(line)["translation"] for line in served.splitlines()]
    printed = command("translate.py", "--run_dir", run, stdin=lines).stdout.decode()
    assert translations == printed.split("\n")[:-1]


def test_run_in_session_needs_nothing_of_this_project():
    program = (ROOT / "export" / "run_in_session.py").read_text("utf-8")
    assert "tf_transformer" not in program
    assert "keras" not in program


def test_the_signature_is_batch_major_and_named(saved_model):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    signature = tf.saved_model.load(str(saved_model)).signatures["serving_default"]
    assert signature.structured_input_signature[1] == {
        "text": tf.TensorSpec([None], tf.string, name="text")
    }
    outputs = signature.structured_outputs
    assert {name: (spec.dtype, spec.shape.rank) for name, spec in outputs.items()} == {
        "translation": (tf.string, 1),
        "score": (tf.float32, 1),
    }


def test_variables_are_stored_once(run, saved_model):
    from tf_transformer.translator import Translator

    parameters = Translator.from_run(run).model.count_params()
    stored = sum(f.stat().st_size for f in (saved_model / "variables").iterdir())
    # Small models carry a few KB of index and object graph.
    assert 4 * parameters <= stored <= 4 * parameters * 1.05 + 30_000


class Forger:
    """Saves one translator's model and answers as another."""

    def __init__(self, saved, answers):
        self.save = saved.save
        self.answers = answers

    def __call__(self, texts):
        return self.answers(texts)


def test_a_wrong_export_is_refused_and_leaves_nothing(run, tmp_path, monkeypatch):
    """The check is real: it notices a SavedModel with another limit than the translator's."""
    from tf_transformer.translator import Translator

    monkeypatch.syspath_prepend(ROOT)
    export = importlib.import_module("export.__main__")
    load = Translator.from_run
    forger = Forger(load(run, max_extra_length=1), load(run, max_extra_length=9))
    monkeypatch.setattr(Translator, "from_run", lambda *args, **options: forger)
    with pytest.raises(RuntimeError, match="the export differs from the run it came from"):
        export.main(str(run), str(tmp_path / "served" / "1"))
    assert list((tmp_path / "served").iterdir()) == []


def test_an_existing_version_is_not_overwritten(run, saved_model):
    message = error_of("-m", "export", "--run_dir", run, "--to", saved_model)
    assert "exists; give --to a new version, like" in message
    assert f"{saved_model.parent / '2'}" in message


@pytest.mark.parametrize("name", ["evaluate.py", "translate.py"])
def test_a_folder_that_is_no_run_is_an_error(name, tmp_path):
    message = error_of(name, "--run_dir", tmp_path)
    assert "is not a run's folder: it has no config.yaml" in message


def test_export_of_a_folder_that_is_no_run_is_an_error(tmp_path):
    message = error_of("-m", "export", "--run_dir", tmp_path, "--to", tmp_path / "1")
    assert "is not a run's folder" in message


def test_unknown_and_impossible_options_are_errors(tmp_path):
    assert "model.d_mode" in error_of("train.py", "--run_dir", tmp_path, "--model.d_mode", 8)
    message = error_of("train.py", "--run_dir", tmp_path, "--model.dropout_rate", 1.5)
    assert "model.dropout_rate must be at least 0 and below 1, got 1.5" in message
    bad = tmp_path / "bad.yaml"
    bad.write_text("train: {stepz: 3}\n")
    assert "stepz" in error_of("train.py", "--run_dir", tmp_path, "--config", bad)


def test_files_of_unequal_length_are_an_error(own_files, tmp_path):
    (tmp_path / "short.de").write_text("x\n", "utf-8")
    message = error_of(
        *("train.py", "--run_dir", tmp_path / "run"),
        *("--data.train_source", own_files / "a.en", "--data.train_target", tmp_path / "short.de"),
    )
    assert "short.de ends after line 1 but" in message


def test_a_broken_config_is_an_error(run, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    (broken / "config.yaml").write_text("model: {d_model: many}\n")
    assert "config.yaml" in error_of("translate.py", "--run_dir", broken)
