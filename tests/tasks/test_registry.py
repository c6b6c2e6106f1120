"""Tasks by name, and a complete task of a user's own with the commands that everyone uses."""

import dataclasses
import json

import pytest
from tasks import reversal

from tf_transformer import tasks
from tf_transformer.commands import evaluate, export, train, translate
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.training import trainer

# --- names -----------------------------------------------------------------------------------


def test_translation_is_registered():
    assert tasks.get("translation") is TRANSLATION


def test_an_own_task_is_registered_by_one_line_or_imported_by_its_name():
    """The line is the last one of reversal.py."""
    assert tasks.get("reversal") is reversal.REVERSAL
    assert tasks.get("tasks.reversal:REVERSAL") is reversal.REVERSAL


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("parsin", r"unknown task 'parsin'; expected .*translation.*, or module:attribute\."),
        (
            "no_module:TASK",
            r"task 'no_module:TASK' cannot be imported: No module named 'no_module'",
        ),
        ("tasks.reversal:NONE", r"task 'tasks.reversal:NONE' cannot be imported: module .* 'NONE'"),
    ],
)
def test_an_unknown_task_is_an_error(name, message):
    with pytest.raises(InputError, match=message):
        tasks.get(name)


@pytest.mark.parametrize("name", ["classification", "masked_language_modeling"])
@pytest.mark.parametrize("options", [{"consistency": "simcut"}, {"word_dropout": 0.1}])
def test_tasks_with_a_loss_of_their_own_refuse_options_of_objectives(name, options):
    config = Config(train=TrainConfig(**options), task=name)
    with pytest.raises(InputError, match="next token"):
        tasks.get(name).complete(config)


# --- a task of a user's own --------------------------------------------------------------------


@pytest.fixture(scope="module")
def reversal_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "reversal"
    train.main(
        str(run),
        ModelConfig(num_layers=1, d_model=32, d_ff=64, num_heads=4, dropout_rate=0.0),
        DataConfig(vocabulary_size=300, batch_tokens=500, max_length=20),
        TrainConfig(
            **{"steps": 300, "validate_every": 150, "warmup_steps": 100, "label_smoothing": 0.0},
            **{"valid_score_examples": 50, "threads": 2},
        ),
        DecodeConfig(beam_size=2, average=1),
        task="tasks.reversal:REVERSAL",
    )
    return run


def test_training_chooses_the_best_weights_by_the_metric_of_the_task(reversal_run):
    rows = RunFolder(reversal_run).load_metrics(300)
    assert [row["step"] for row in rows] == [150, 300]
    assert all("val_bleu" not in row for row in rows)
    scores = [row["val_exact_match"] for row in rows]
    assert max(scores) > 80
    (best,) = RunFolder(reversal_run).best.glob("*.index")
    assert best.name == f"step-{rows[scores.index(max(scores))]['step']}.index"


def test_evaluation_prints_the_scores_of_the_task(reversal_run, capsys):
    evaluate.main(str(reversal_run))
    *_, described, scores = capsys.readouterr().out.splitlines()
    assert json.loads(scores).keys() == {"exact_match", "examples"}
    assert json.loads(scores)["exact_match"] > 80
    assert described.startswith("100 numbers, ")


def test_an_option_of_the_task_is_read_saved_and_shown(reversal_run, tmp_path, capsys):
    words = ["--run_dir", str(tmp_path), "--task", "tasks.reversal:REVERSAL"]
    task = read_options(train.main, [*words, "--task.rotate", "1"])["task"]
    assert task == reversal.ReversalOptions("tasks.reversal:REVERSAL", rotate=1)
    test = reversal.REVERSAL.load_test(Config(task=task), "", "")
    assert test.references[0] == " ".join((test.inputs[0][2:] + " " + test.inputs[0][:1])[::-2])
    RunFolder(tmp_path).save_config(Config(task=task))
    assert RunFolder(tmp_path).load_config().task == task
    assert RunFolder(reversal_run).load_config().task.rotate == 0
    with pytest.raises(SystemExit):
        read_options(train.main, [*words, "--help"])
    assert "--task.rotate" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"task\.rotate must be an integer, got 'x'"):
        reversal.ReversalOptions(rotate="x")
    config = dataclasses.replace(RunFolder(reversal_run).load_config(), task=task)
    with pytest.raises(InputError, match=r"another configuration: task\.rotate was 0, now 1"):
        trainer.train(Run.at(reversal_run, config))


def test_prediction_reverses_digits(reversal_run, tmp_path):
    (tmp_path / "in").write_text("3 1 4\n\n2 7 1\n", "utf-8")
    translate.main(str(reversal_run), str(tmp_path / "in"), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text("utf-8") == "4 1 3\n\n1 7 2\n"


@pytest.mark.slow
def test_the_export_reverses_digits(reversal_run, tmp_path):
    from tf_transformer.inference.saved_translator import SavedTranslator

    export.main(str(reversal_run), str(tmp_path / "1"))
    saved = SavedTranslator(tmp_path / "1")
    assert [p.text for p in saved(["3 1 4", "2 7 1"])] == ["4 1 3", "1 7 2"]
    assert saved.metadata["task"] == "tasks.reversal:REVERSAL"
    assert saved.metadata["training"]["validation_exact_match"] > 80
    assert "languages" not in saved.metadata


def test_another_task_cannot_go_on_with_the_run(reversal_run):
    config = dataclasses.replace(RunFolder(reversal_run).load_config(), task="translation")
    with pytest.raises(InputError, match=r"task was 'tasks.reversal:REVERSAL', now 'translation'"):
        trainer.train(Run.at(reversal_run, config))


def test_a_predictor_without_alignments_is_an_error(reversal_run, tmp_path, monkeypatch):
    class Predictor:
        """Has no method `align`."""

    monkeypatch.setattr(reversal.REVERSAL, "predictor", lambda *_: Predictor(), raising=False)
    monkeypatch.setattr(Predictor, "with_dtype", lambda self, dtype: self, raising=False)
    (tmp_path / "in").write_text("3 1 4\n", "utf-8")
    files = {"input": str(tmp_path / "in"), "alignments_output": str(tmp_path / "links")}
    with pytest.raises(InputError, match=r"be aligned with their inputs\. Leave out --align"):
        translate.main(str(reversal_run), **files)
