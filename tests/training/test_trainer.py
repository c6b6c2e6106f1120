"""A whole training run: its folder, going on after an interruption, early stopping, warm starts."""

import dataclasses
import itertools
import json
import math
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import (
    scored_config,
    small_config,
    stored_weights,
    weights_of,
    without_trained_length,
)

from tf_transformer.config import AugmentConfig, DataConfig
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Evaluation
from tf_transformer.tasks.translation import TRANSLATION, Translation
from tf_transformer.training import divergence, preparation, strategy, trainer
from tf_transformer.training.checkpoint import Checkpoints, _manager
from tf_transformer.training.reports import TrainingProgress
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.training.strategy import make_strategy
from tf_transformer.training.validation import Validation


def test_a_run_holds_what_the_readme_says(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        *("config.yaml", "execution.json", "tokenizer.model", "samples.txt", "text.json"),
        *("source_words.txt", "training_keys.bin", "checkpoints", "logs", "metrics.jsonl"),
    }
    assert without_trained_length(RunFolder(run).load_config()) == scored_config()


def test_metrics_have_a_line_per_validation_interval(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4]
    for line in lines:
        assert {"loss", "perplexity", "accuracy", "val_loss", "val_accuracy"} <= line.keys()
        assert line["tokens_per_second"] > 0
        assert line["learning_rate"] > 0
        assert 0 < line["gradient_norm"] < 100
        assert "val_gradient_norm" not in line


def test_tensorboard_can_read_the_logs(run):
    tags = {
        value.tag
        for events in (run / "logs").glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert {"loss", "val_loss", "learning_rate", "tokens_per_second"} <= tags


@pytest.mark.parametrize(
    "options",
    [
        {"micro_batches": 2},
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"micro_batches": 1, "consistency": "simcut"},
                {"micro_batches": 1, "jit_compile": True},
                {"micro_batches": 2, "jit_compile": True},
            )
        ),
    ],
)
def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path, options):
    """Bit for bit, with dropout on: the random state is part of a checkpoint."""

    def config(steps):
        full = small_config(steps=steps, **options)
        augment = AugmentConfig(join=0.3, upper=0.3, copy=0.3)
        data = dataclasses.replace(full.data, bpe_dropout=0.2, augment=augment)
        return dataclasses.replace(full, data=data)

    trainer.train(Run.at(tmp_path / "whole", config(4)))
    trainer.train(Run.at(tmp_path / "parts", config(2)))
    trainer.train(Run.at(tmp_path / "parts", config(4)))
    for whole, parts in zip(
        weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts"), strict=True
    ):
        np.testing.assert_array_equal(whole, parts)
    steps = [
        json.loads(line)["step"]
        for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    ]
    assert steps == [2, 4]


@pytest.mark.slow
def test_a_whole_run_on_replicas_and_threads_is_the_run_on_one(tmp_path, capsys):
    """Also when it is interrupted. Without dropout, because each draws noise of its own."""

    def config(strategy, steps, threads):
        full = small_config(strategy=strategy, steps=steps, threads=threads)
        return dataclasses.replace(
            full,
            model=dataclasses.replace(full.model, dropout_rate=0.0),
            data=dataclasses.replace(full.data, augment=AugmentConfig(lower=0.3, copy=0.3)),
        )

    trainer.train(Run.at(tmp_path / "one", config("one", 4, threads=1)))
    assert "float32, 1 replica(s)\n" in capsys.readouterr().out
    trainer.train(Run.at(tmp_path / "two", config("mirrored", 2, threads=2)))
    assert "float32, 2 replica(s) of 2 micro-batches\n" in capsys.readouterr().out
    trainer.train(Run.at(tmp_path / "two", config("mirrored", 4, threads=1)))
    for one, two in zip(weights_of(tmp_path / "one"), weights_of(tmp_path / "two"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_a_finished_run_is_not_changed(run):
    before = sorted((p.name, p.stat().st_mtime_ns) for p in (run / "checkpoints").rglob("*"))
    assert trainer.train(Run.at(run, scored_config())).updates == 4
    after = sorted((p.name, p.stat().st_mtime_ns) for p in (run / "checkpoints").rglob("*"))
    assert before == after


def test_fewer_updates_than_the_run_has_are_said(run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "run")
    assert trainer.train(Run.at(tmp_path / "run", scored_config(steps=2))).updates == 4
    assert "nothing is trained: the run has made 4 updates" in capsys.readouterr().err


def test_another_configuration_is_refused(run):
    with pytest.raises(InputError, match=r"train.seed was 1, now 9.*another --run_dir"):
        trainer.train(Run.at(run, scored_config(seed=9)))


def test_the_folder_of_tokenised_text_may_change(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    data = dataclasses.replace(scored_config().data, cache_dir=str(tmp_path / "elsewhere"))
    trainer.train(Run.at(tmp_path / "run", dataclasses.replace(scored_config(), data=data)))
    assert RunFolder(tmp_path / "run").load_config().data == data


def test_a_failed_start_does_not_fix_the_configuration(tmp_path):
    broken = dataclasses.replace(
        small_config(), data=DataConfig(train_source="missing.en", train_target="missing.de")
    )
    with pytest.raises(InputError, match=r"missing\.en is not a file"):
        trainer.train(Run.at(tmp_path, broken))
    assert trainer.train(Run.at(tmp_path, small_config(steps=1))).updates == 1


def test_a_run_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--run_dir .*file/run cannot be made"):
        trainer.train(Run.at(tmp_path / "file" / "run", small_config()))


def set_scores(monkeypatch, *scores):
    """Replaces the validation chrF of successive intervals, by which the best are chosen here."""
    remaining = iter(scores)

    def evaluate(self, predictor, test):
        (metric,) = self.requested or [self.metric("chrf")]
        return Evaluation(test.references, {metric.name: float(next(remaining))})

    monkeypatch.setattr(Translation, "evaluate", evaluate)


def test_it_stops_early_and_keeps_the_best(tmp_path, monkeypatch):
    """Scores 1 5 4 4 | 4: patience goes on counting after the end of the first start."""
    set_scores(monkeypatch, 1, 5, 4, 4, 4, 9)
    bests = []
    config = scored_config(steps=8, patience=3)
    first = trainer.train(Run.at(tmp_path, config), bests.append)
    assert not first.stopped_early
    second = trainer.train(Run.at(tmp_path, scored_config(steps=100, patience=3)), bests.append)
    assert second.stopped_early
    assert (second.updates, second.best, second.best_update) == (10, 5, 4)
    assert bests == [2, 4, 4]  # reported again when training goes on
    (best,) = (tmp_path / "checkpoints" / "best").glob("*.index")
    assert best.name == "step-4.index"
    stored = stored_weights(str(tmp_path / "checkpoints" / "best" / "step-4"))
    for loaded, expected in zip(weights_of(tmp_path, average="best"), stored, strict=True):
        np.testing.assert_array_equal(loaded, expected)
    third = trainer.train(Run.at(tmp_path, scored_config(steps=100, patience=3)))
    assert third.stopped_early
    assert third.updates == 10


@pytest.mark.slow
def test_examples_are_scored_every_so_many_intervals(tmp_path, monkeypatch):
    set_scores(monkeypatch, 1, 2)
    trainer.train(Run.at(tmp_path, scored_config(steps=9, valid_score_every=2)))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line.get("val_chrf") for line in lines] == [None, 1, None, 2, None]


class SourceLength:
    """A metric in one file that reads the inputs: the error of the length of predictions."""

    name = "length_error"
    lower_is_better = True

    def score(self, inputs, predictions, references):
        pairs = zip(inputs, predictions, strict=True)
        return {"length_error": float(sum(abs(len(x) - len(y)) for x, y in pairs))}


SOURCE_LENGTH = SourceLength()


@pytest.mark.slow
def test_a_metric_of_a_user_that_reads_the_source_is_logged_and_chooses(tmp_path):
    config = scored_config(steps=6, metric="training.test_trainer:SOURCE_LENGTH")
    result = trainer.train(Run.at(tmp_path, config))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    errors = [line["val_length_error"] for line in lines]
    assert result.best == min(errors)
    assert result.metric == "val_length_error"
    assert {"val_bleu", "val_chrf", "val_exact_match"} <= lines[0].keys()


@pytest.mark.slow
def test_of_a_metric_whose_lower_scores_are_better_the_lowest_is_best(
    tmp_path, monkeypatch, capsys
):
    """Scores 9 5 6 | 7 8: the best ones are exported and averaged, patience counts from them."""
    set_scores(monkeypatch, 9, 5, 6, 7, 8)
    bests = []
    options = {"metric": "ter", "patience": 3}
    trainer.train(Run.at(tmp_path, scored_config(steps=6, **options)), bests.append)
    result = trainer.train(Run.at(tmp_path, scored_config(steps=100, **options)), bests.append)
    assert (result.best, result.best_update, result.stopped_early) == (5, 4, True)
    assert (result.updates, result.metric) == (10, "val_ter")
    assert bests == [2, 4, 4]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["val_ter"] for line in lines] == [9, 5, 6, 7, 8]
    assert [path.name for path in RunFolder(tmp_path).best.glob("*.index")] == ["step-4.index"]
    assert "best weights: by val_ter, lower is better\n" in capsys.readouterr().out


def test_without_scores_the_loss_decides(tmp_path):
    result = trainer.train(Run.at(tmp_path, small_config()))
    assert result.metric == "val_loss"
    assert result.best == result.metrics["val_loss"]
    assert result.best_update == 4


def test_scores_that_tie_are_progress_while_the_loss_falls(tmp_path, monkeypatch, capsys):
    set_scores(monkeypatch, 0, 0, 0)
    result = trainer.train(Run.at(tmp_path, scored_config(steps=6, patience=1)))
    assert not result.stopped_early
    assert (result.metric, result.best_update) == ("val_chrf", 6)
    out = capsys.readouterr().out
    assert "best weights: by val_chrf\n" in out
    assert "learning rate: rises until update 10 (train.warmup_steps), so it ends at 60% of" in out
    assert [path.name for path in RunFolder(tmp_path).best.glob("*.index")] == ["step-6.index"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": "blue"},
            r"train.metric: unknown metric 'blue'; expected bleu, chrf, exact_match, ter, loss, ",
        ),
        ({"metric": "ter", "valid_score_examples": 0}, "needs train.valid_score_examples above 0"),
        ({"metric": "bleu", "valid_score_examples": 0}, "needs train.valid_score_examples above 0"),
    ],
)
def test_a_metric_that_is_not_computed_is_an_error(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        trainer.train(Run.at(tmp_path / "run", small_config(**options)))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_checkpoint_of_an_earlier_version_goes_on_with_its_metric(tmp_path, monkeypatch):
    """Earlier versions wrote no `choice`, and their metric was BLEU for all references."""
    init = Checkpoints.__init__

    def init_as_before(self, *arguments):
        init(self, *arguments)
        parts = {name: part for name, part in self._parts.items() if name != "choice"}
        self._resume = _manager(tf.train.Checkpoint(**parts), RunFolder(tmp_path).resume, 1)

    monkeypatch.setattr(Checkpoints, "__init__", init_as_before)
    trainer.train(Run.at(tmp_path, scored_config(steps=2)))
    monkeypatch.undo()
    for steps in (4, 6):  # the second start reads a checkpoint of this version
        result = trainer.train(Run.at(tmp_path, scored_config(steps=steps)))
        assert (result.updates, result.metric) == (steps, "val_bleu")


def test_a_warm_start_has_the_other_runs_weights_and_tokenizer(run, tmp_path):
    config = small_config(init_from=str(run), steps=1, learning_rate=1e-9, seed=5)
    config = dataclasses.replace(config, decode=dataclasses.replace(config.decode, average=1))
    trainer.train(Run.at(tmp_path, config))
    expected = weights_of(run, average=RunFolder(run).load_config().decode.average)
    for ours, theirs in zip(weights_of(tmp_path), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert (tmp_path / "tokenizer.model").read_bytes() == (run / "tokenizer.model").read_bytes()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1]


def assert_equal_weights(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_the_weights_of_the_start_are_best_until_an_update_is_better(run, tmp_path, monkeypatch):
    """Scores 7 5 6 | 4 8: the start's weights count as those of update 0, in no average."""
    set_scores(monkeypatch, 7, 5, 6, 4, 8)
    origin = weights_of(run, average=RunFolder(run).load_config().decode.average)
    bests, options = [], {"init_from": str(run), "patience": 5}
    first = trainer.train(Run.at(tmp_path, scored_config(steps=4, **options)), bests.append)
    assert (first.start, first.best, first.best_update) == (7, 7, 0)
    assert_equal_weights(weights_of(tmp_path, average="best"), origin)
    folder = RunFolder(tmp_path)
    assert {path.stem for path in folder.checkpoints.glob("*.index")} == {"step-2", "step-4"}
    intervals = [stored_weights(str(folder.checkpoints / f"step-{step}")) for step in (2, 4)]
    means = [np.mean(pair, axis=0, dtype=np.float64) for pair in zip(*intervals, strict=True)]
    for mean, weight in zip(means, weights_of(tmp_path, average=5), strict=True):
        np.testing.assert_allclose(weight, mean, atol=1e-7)
    second = trainer.train(Run.at(tmp_path, scored_config(steps=8, **options)), bests.append)
    assert (second.start, second.best, second.best_update) == (7, 8, 8)
    assert bests == [0, 0, 8]  # reported again when training goes on
    assert [line["val_chrf"] for line in logged(tmp_path)] == [7, 5, 6, 4, 8]
    assert [line["step"] for line in logged(tmp_path)] == [0, 2, 4, 6, 8]


@pytest.mark.slow
def test_patience_counts_from_the_weights_of_the_start(run, tmp_path, monkeypatch):
    """It stops after the first whole pass over the text, which has 7 updates."""
    set_scores(monkeypatch, 7, 5, 6, 5, 6)
    config = scored_config(steps=100, init_from=str(run), patience=2)
    result = trainer.train(Run.at(tmp_path, config))
    assert (result.updates, result.best_update, result.stopped_early) == (8, 0, True)


@pytest.mark.parametrize("metric", ["", pytest.param("perplexity", marks=pytest.mark.slow)])
def test_the_validation_of_the_start_is_that_of_its_run(run, tmp_path, metric):
    """Oracle: the last validation of that run, with the weights of its last checkpoint alone."""
    shutil.copytree(run, tmp_path / "run")
    config = RunFolder(run).load_config()
    decode = dataclasses.replace(config.decode, average=1)
    RunFolder(tmp_path / "run").save_config(dataclasses.replace(config, decode=decode))
    tuning = scored_config(steps=1, init_from=str(tmp_path / "run"), metric=metric)
    result = trainer.train(Run.at(tmp_path / "tuned", tuning))
    start, before = logged(tmp_path / "tuned")[0], logged(run)[-1]
    assert start.keys() == {"step", *(name for name in before if name.startswith("val_"))}
    for name in start.keys() - {"step"}:
        assert start[name] == pytest.approx(before[name], rel=1e-5)
    assert result.start == start[result.metric]


@pytest.mark.slow
def test_the_validation_of_the_start_changes_no_update(run, tmp_path, monkeypatch):
    config = scored_config(steps=2, init_from=str(run), average_decay=0.9)
    trainer.train(Run.at(tmp_path / "with", config))
    monkeypatch.setattr(trainer._Trainer, "_validate_origin", lambda *arguments: None)
    trainer.train(Run.at(tmp_path / "without", config))
    for average in (1, "ema"):
        both = (weights_of(tmp_path / name, average=average) for name in ("with", "without"))
        assert_equal_weights(*both)


def test_a_start_that_was_killed_validates_its_weights_again(run, tmp_path, monkeypatch):
    """It has no checkpoint to resume from, and any training run may begin in its folder."""

    def kill(*arguments, **options):
        shutil.copytree(tmp_path / "run", tmp_path / "killed")
        raise InputError("killed")

    monkeypatch.setattr(trainer._Trainer, "_train", kill)
    with pytest.raises(InputError, match="killed"):
        trainer.train(Run.at(tmp_path / "run", small_config(steps=2, init_from=str(run))))
    monkeypatch.undo()
    assert (tmp_path / "killed" / "checkpoints" / "best" / "step-0.index").exists()
    config = small_config(steps=2, init_from=str(run), seed=7)
    trainer.train(Run.at(tmp_path / "killed", config))
    assert [line["step"] for line in logged(tmp_path / "killed")] == [0, 2]


def test_weights_that_do_not_suit_the_text_are_an_error(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Validation, "losses", lambda self: {"val_loss": math.nan})
    message = "weights of train.init_from do not suit .*validation loss is nan .*Give another"
    with pytest.raises(InputError, match=message):
        trainer.train(Run.at(tmp_path, small_config(init_from=str(run))))


@pytest.mark.parametrize("warmup_steps", [1, 7, 1000])
def test_a_training_that_ends_in_its_warm_up_is_said(warmup_steps):
    """Oracle: the learning rates of all updates."""
    schedule = TransformerSchedule(16, warmup_steps)
    rates = [float(schedule(made)) for made in range(2 * warmup_steps)]
    for steps in (1, 2, 6, 7, 200, 999, 1000, 2 * warmup_steps):
        share = max(rates[:steps]) / max(rates)
        line = trainer._warm_up(steps, warmup_steps)
        assert bool(line) == (share < 0.9999)
        if line:
            said = re.fullmatch(
                r".*rises until update ([\d,]+) .* at (\d+)% of its peak", line, re.S
            )
            assert said[1] == f"{warmup_steps:,}"
            assert float(said[2]) == pytest.approx(100 * share, abs=1)


@pytest.mark.slow
def test_a_run_that_goes_on_does_not_need_the_run_it_started_with(run, tmp_path):
    first = tmp_path / "first"
    shutil.copytree(run, first)
    config = small_config(init_from=str(first), steps=1)
    trainer.train(Run.at(tmp_path / "second", config))
    shutil.rmtree(first)
    config = small_config(init_from=str(first), steps=2)
    assert trainer.train(Run.at(tmp_path / "second", config)).updates == 2


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("data", "vocabulary_size", 330, "data.vocabulary_size is 320 there, 330 here"),
        ("model", "d_ff", 48, "model.d_ff is 32 there, 48 here"),
    ],
)
def test_a_warm_start_of_another_shape_is_an_error(run, tmp_path, part, name, value, message):
    config = small_config(init_from=str(run))
    changed = dataclasses.replace(getattr(config, part), **{name: value})
    with pytest.raises(InputError, match=message):
        trainer.train(Run.at(tmp_path, dataclasses.replace(config, **{part: changed})))


def test_gradients_that_stay_infinite_stop_the_run_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(divergence, "MAX_SKIPPED", 3)
    message = r"3 updates in a row.*were skipped.*Lower train.learning_rate"
    options = {"learning_rate": 1e38, "steps": 4, "validate_every": 4}
    with pytest.raises(InputError, match=message):
        trainer.train(Run.at(tmp_path, small_config(**options)))


def logged(run):
    """The lines of metrics.jsonl; JSON has no NaN and no Infinity."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]


def test_divergence_stops_the_run_with_advice(tmp_path):
    message = r"diverged by update 2: its loss is .*a uniform guess among \d+ tokens has 5\..*Lower"
    with pytest.raises(InputError, match=message):
        trainer.train(Run.at(tmp_path, small_config(learning_rate=1e8)))
    (line,) = logged(tmp_path)
    assert line["step"] == 2
    assert line["loss"] > 1e3
    assert line["perplexity"] is None
    assert not list(tmp_path.rglob("*.index"))


def test_divergence_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    losses = Validation.losses
    monkeypatch.setattr(
        Validation,
        "losses",
        lambda self: {"val_loss": math.nan if self.updater.next_batch == 4 else 5.0},
    )
    message = r"validation loss is nan .*The checkpoint of update 2 is whole"
    with pytest.raises(InputError, match=message):
        trainer.train(Run.at(tmp_path, small_config(steps=4)))
    assert [line["val_loss"] for line in logged(tmp_path)] == [5.0, None]
    assert {path.stem for path in tmp_path.rglob("*.index")} == {"step-2"}
    monkeypatch.setattr(Validation, "losses", losses)
    assert trainer.train(Run.at(tmp_path, small_config(steps=4))).updates == 4
    assert [line["step"] for line in logged(tmp_path)] == [2, 4]


@pytest.mark.slow
@pytest.mark.parametrize("make_unwritable", ["full", "gone"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one(
    tmp_path, monkeypatch, make_unwritable
):
    trainer.train(Run.at(tmp_path, small_config(steps=2)))
    before = weights_of(tmp_path)

    def fail(self, *arguments, **options):
        if make_unwritable == "gone":
            raise PermissionError(13, "Permission denied")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.train.Checkpoint, "_write", fail)
    monkeypatch.setattr(tf.train.Checkpoint, "write", fail)
    with pytest.raises(InputError, match=r"cannot be written.*The previous checkpoint is whole"):
        trainer.train(Run.at(tmp_path, small_config(steps=4)))
    monkeypatch.undo()
    (tmp_path / "checkpoints" / "resume" / "step-9_temp").mkdir()  # of a kill while it was saved
    for ours, theirs in zip(weights_of(tmp_path), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert trainer.train(Run.at(tmp_path, small_config(steps=4))).updates == 4
    assert not list(tmp_path.rglob("*_temp"))


def test_text_that_is_not_utf8_gives_a_warning(tmp_path, capsys):
    files = {}
    for side, encoding in (("train_source", "utf-8"), ("train_target", "latin-1")):
        files[side] = str(tmp_path / side)
        lines = "".join(f"{n} {'ü' if n == 7 else 'u'}\n" for n in range(50))
        (tmp_path / side).write_bytes(lines.encode(encoding))
    data = dataclasses.replace(small_config().data, **files)
    config = dataclasses.replace(small_config(), data=data)
    preparation.prepare(Run.at(tmp_path / "run", config), TRANSLATION, make_strategy("one"))
    reason = f"1 not UTF-8, the first in line 8 of {files['train_target']}"
    expected = (
        f"warning: training: 1 of 46 examples are skipped: {reason}. Convert the file to UTF-8"
    )
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("cache_dir", ["", "cache"])
def test_tokenised_text_is_kept_where_the_configuration_says(tmp_path, monkeypatch, cache_dir):
    """And a second start finds it there, and goes on with the same batches."""
    monkeypatch.chdir(tmp_path)
    config = small_config()
    monkeypatch.setattr(preparation, "SHARD_PAIRS", 7)
    data = dataclasses.replace(config.data, cache_dir=cache_dir)
    config = dataclasses.replace(config, data=data)

    def prepared():
        data = preparation.prepare(
            Run.at(tmp_path / "run", config), TRANSLATION, make_strategy("one")
        )
        batches = itertools.islice(data.train.batches(start=3), len(data.train))
        return [batch["source"] for batch in batches]

    first = prepared()
    written = {path: path.stat().st_mtime_ns for path in stored(tmp_path)}
    assert (tmp_path / "run" / "tokens").exists() == (cache_dir == "")
    assert len(written) > 8
    for one, again in zip(first, prepared(), strict=True):
        np.testing.assert_array_equal(one, again)
    assert {path: path.stat().st_mtime_ns for path in stored(tmp_path)} == written


def stored(folder):
    return folder.rglob("*.npy")


@pytest.mark.slow
def test_the_workers_decide_together_when_to_read_metrics(tmp_path, monkeypatch):
    """Several workers read metrics in one collective operation, and their clocks differ."""
    read, decisions = [], iter([False, True, False])
    monkeypatch.setattr(
        strategy, "any_worker", lambda strategy, due, stopping: [next(decisions), False]
    )
    monkeypatch.setattr(
        TrainingProgress, "refresh", lambda progress, updater: read.append(updater.next_batch)
    )
    trainer.train(Run.at(tmp_path, small_config(steps=3, validate_every=3)))
    assert read == [2]


def test_a_run_knows_the_longest_source_that_it_was_trained_on(run):
    """Measured by hand, with the end token."""
    encode = Run.load(run).codec["source"].encode
    longest = max(
        len(encode(source)) for source, _ in TRANSLATION.load_splits(small_config()).train
    )
    assert Run.load(run).config.decode.trained_source_length == longest


@pytest.mark.parametrize(("known", "expected"), [(0, 0), (2, 3), (7, 7)])
@pytest.mark.parametrize("resumes", [False, True])
def test_earlier_text_counts_for_the_longest_source(run, tmp_path, known, expected, resumes):
    """Text of a training run that did not store its longest source leaves it unknown."""
    rows = IdRows.from_lists([[5, 2], [6, 7, 2]])
    store = TokenStore.of(TokenExamples({"source": rows}), TokenExamples({"source": rows}))
    config = RunFolder(run).load_config()
    decode = dataclasses.replace(config.decode, trained_source_length=known)
    RunFolder(tmp_path / "earlier").save_config(dataclasses.replace(config, decode=decode))
    shutil.copy(run / "tokenizer.model", tmp_path / "earlier")
    missing = small_config(init_from=str(tmp_path / "missing"))
    of_origin = small_config(init_from=str(tmp_path / "earlier"))
    one = Run.at(tmp_path / "earlier", missing) if resumes else Run.at(tmp_path, of_origin)
    made = preparation.with_trained_length(one, [store], resumes)
    assert made.decode.trained_source_length == expected


def test_the_longest_source_of_text_that_is_still_read_is_the_limit(tmp_path):
    new = Run.at(tmp_path, small_config())
    store, other = TokenStore(), TokenStore()
    store.add(TokenExamples({"source": IdRows.from_lists([[5, 2]])}))
    other.add(TokenExamples({"labels": IdRows.from_lists([[5, 2]])}))
    made = preparation.with_trained_length(new, [store], resumes=False)
    assert made.decode.trained_source_length == new.config.data.max_length > 2
    assert preparation.with_trained_length(new, [other], resumes=False) == new.config
