"""The command train: its summary, and exports of the best weights in a process of their own."""

import dataclasses
import math
import subprocess
import types

import pytest

from tf_transformer.commands import train
from tf_transformer.config import Config, DataConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.training.trainer import Result

SMALL = DataConfig(generated_pairs=60, held_out=20, vocabulary_size=320)

RESULT = Result(
    updates=1200,
    skipped=0,
    metrics={},
    metric="val_bleu",
    best=31.4159,
    best_update=900,
    start=None,
    stopped_early=False,
    seconds=90,
)


def test_a_summary():
    assert train.summary(RESULT, Config()).splitlines() == [
        "trained 1,200 updates, 1.5 minutes",
        "best val_bleu 31.42 at update 900",
    ]


def test_a_summary_of_an_early_stop_by_loss_with_bad_gradients():
    result = Result(1200, 3, {}, "val_loss", 2.5, 900, None, True, 90)
    config = Config(train=TrainConfig(patience=4))
    assert train.summary(result, config).splitlines() == [
        "trained 1,200 updates, stopped early: 4 scores no better, 1.5 minutes",
        "best val_loss 2.5 at update 900",
        "3 updates skipped: gradients were not finite",
    ]


@pytest.mark.parametrize(
    ("best", "update", "line"),
    [
        (31.4, 900, "best val_bleu 31.4 at update 900; 27.5 at the start, with the weights of a/b"),
        (27.5, 0, "best val_bleu 27.5 at update 0: no update is better than the weights of a/b, "),
    ],
)
def test_a_summary_of_a_fine_tuning_compares_it_with_its_start(best, update, line):
    result = dataclasses.replace(RESULT, best=best, best_update=update, start=27.5)
    lines = train.summary(result, Config(train=TrainConfig(init_from="a/b"))).splitlines()
    assert lines[1].startswith(line)


def test_a_summary_without_a_score_names_no_best_update():
    result = dataclasses.replace(RESULT, best=math.inf, best_update=None)
    assert train.summary(result, Config()).splitlines() == ["trained 1,200 updates, 1.5 minutes"]


@pytest.mark.parametrize("status", [0, 1])
def test_the_best_weights_are_exported_once_and_a_failure_does_not_end_the_training(
    tmp_path, monkeypatch, capsys, status
):
    commands = []

    def popen(command, **options):
        commands.append(command)
        return types.SimpleNamespace(wait=lambda: status)

    monkeypatch.setattr(subprocess, "Popen", popen)
    train.export(RunFolder(tmp_path), 7)
    (command,) = commands
    expected = [
        "-m",
        "tf_transformer.commands.main",
        "export",
        "--run_dir",
        str(tmp_path),
        "--to",
        str(tmp_path / "export" / "7"),
    ]
    assert command[1:] == [*expected, "--average", "best"]
    message = "the export of update 7 failed; training continues"
    assert (message in capsys.readouterr().err) == status
    (tmp_path / "export" / "7").mkdir(parents=True)
    train.export(RunFolder(tmp_path), 7)
    assert len(commands) == 1


def test_a_failed_start_leaves_nothing_behind(tmp_path):
    options = {"train": TrainConfig(init_from=str(tmp_path / "missing")), "data": SMALL}
    with pytest.raises(InputError, match=r"train.init_from must be a run's folder: .*missing"):
        train.main(str(tmp_path / "runs" / "x"), **options)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "notes.txt").touch()
    with pytest.raises(InputError):
        train.main(str(tmp_path / "x"), **options)
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["notes.txt"]
