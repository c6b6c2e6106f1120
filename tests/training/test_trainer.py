"""A run's folder: what is in it, going on after an interruption, averages."""

import dataclasses
import itertools
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import small_config

from tf_transformer.config import Config, DataConfig
from tf_transformer.errors import InputError
from tf_transformer.model import Transformer
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training import trainer
from tf_transformer.training.checkpoint import load_average
from tf_transformer.translator import greedy_translate


def weights_of(run, count=1):
    config = Config.load(run)
    model = Transformer(Tokenizer.load(run / "tokenizer.model").vocabulary_size, config.model)
    model.build()
    load_average(run, model, count)
    return [np.asarray(w) for w in model.weights]


def test_a_run_holds_what_the_readme_says(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        *("config.yaml", "tokenizer.model", "samples.txt"),
        *("checkpoints", "logs", "metrics.jsonl"),
    }
    assert Config.load(run) == small_config()


def test_metrics_have_a_line_a_round(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4]
    for line in lines:
        assert {"loss", "perplexity", "accuracy", "val_loss", "val_bleu"} <= line.keys()
        assert line["tokens_per_second"] > 0
        assert line["learning_rate"] > 0


def test_tensorboard_can_read_the_logs(run):
    (events,) = (run / "logs").glob("events*")
    tags = {
        value.tag
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert {"loss", "val_bleu", "learning_rate", "tokens_per_second"} <= tags


def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path):
    """Bit for bit, with dropout on: the random state is part of a checkpoint."""
    trainer.train(small_config(steps=4), tmp_path / "whole", greedy_translate)
    trainer.train(small_config(steps=2), tmp_path / "parts", greedy_translate)
    trainer.train(small_config(steps=4), tmp_path / "parts", greedy_translate)
    for whole, parts in zip(
        weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts"), strict=True
    ):
        np.testing.assert_array_equal(whole, parts)
    steps = [
        json.loads(line)["step"]
        for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    ]
    assert steps == [2, 4]


def test_a_whole_run_on_two_replicas_is_the_run_on_one(tmp_path):
    """Interrupted and gone on with, too. Without dropout: replicas draw noise of their own."""

    def config(strategy, steps):
        full = small_config(strategy=strategy, steps=steps)
        return dataclasses.replace(full, model=dataclasses.replace(full.model, dropout_rate=0.0))

    trainer.train(config("one", 4), tmp_path / "one", greedy_translate)
    trainer.train(config("mirrored", 2), tmp_path / "two", greedy_translate)
    trainer.train(config("mirrored", 4), tmp_path / "two", greedy_translate)
    for one, two in zip(weights_of(tmp_path / "one"), weights_of(tmp_path / "two"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_a_finished_run_is_left_alone(run):
    before = sorted((p.name, p.stat().st_mtime_ns) for p in (run / "checkpoints").iterdir())
    assert trainer.train(small_config(), run, greedy_translate).updates == 4
    after = sorted((p.name, p.stat().st_mtime_ns) for p in (run / "checkpoints").iterdir())
    assert before == after


def test_average_is_the_mean_of_the_newest_checkpoints(run):
    """Oracle: NumPy's mean of every weight that TensorFlow reads from the checkpoint files."""
    paths = tf.train.get_checkpoint_state(str(run / "checkpoints")).all_model_checkpoint_paths
    first, newest = (stored_weights(path) for path in paths)
    assert len(first) == len(weights_of(run)) > 20
    for averaged, one, other in zip(weights_of(run, count=2), first, newest, strict=True):
        np.testing.assert_allclose(averaged, (one + other) / 2, atol=1e-7)
    for alone, expected in zip(weights_of(run, count=1), newest, strict=True):
        np.testing.assert_array_equal(alone, expected)
    assert any(np.abs(one - other).max() > 1e-6 for one, other in zip(first, newest, strict=True))


def stored_weights(path):
    """The weights in a checkpoint, in the model's order."""
    reader = tf.train.load_checkpoint(path)
    key = "weights/{}/.ATTRIBUTES/VARIABLE_VALUE".format
    count = sum(name.startswith("weights/") for name in reader.get_variable_to_shape_map())
    return [reader.get_tensor(key(i)) for i in range(count)]


def test_another_configuration_is_refused(run):
    with pytest.raises(InputError, match=r"train.seed was 1, now 9.*another --run_dir"):
        trainer.train(small_config(seed=9), run, greedy_translate)


def test_the_folder_of_tokenised_text_may_change(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    data = dataclasses.replace(small_config().data, cache_dir="elsewhere")
    trainer.claim(tmp_path / "run", dataclasses.replace(small_config(), data=data))
    assert Config.load(tmp_path / "run").data.cache_dir == "elsewhere"


def test_a_start_that_failed_binds_nobody(tmp_path):
    broken = dataclasses.replace(
        small_config(), data=DataConfig(train_source="missing.en", train_target="missing.de")
    )
    with pytest.raises(InputError, match=r"missing\.en is not a file"):
        trainer.train(broken, tmp_path, greedy_translate)
    (tmp_path / "tokenizer.model").write_bytes(b"of a start that stopped half way")
    assert trainer.train(small_config(steps=1), tmp_path, greedy_translate).updates == 1


def test_a_run_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--run_dir .*file/run cannot be made"):
        trainer.train(small_config(), tmp_path / "file" / "run", greedy_translate)


def test_a_folder_without_checkpoints_is_an_error(run, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(run, broken, ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.raises(InputError, match="holds no checkpoint; train first"):
        weights_of(broken)


@pytest.mark.parametrize("cache_dir", ["", "cache"])
def test_tokenised_text_is_kept_where_the_configuration_says(tmp_path, monkeypatch, cache_dir):
    """And a second start finds it there, and goes on with the same batches."""
    monkeypatch.chdir(tmp_path)
    config = small_config()
    data = dataclasses.replace(config.data, shard_pairs=7, cache_dir=cache_dir)
    config = dataclasses.replace(config, data=data)

    def prepared():
        plan = trainer._prepare(config, tmp_path / "run").plan
        return [batch for batch, _ in itertools.islice(plan.batches(start=3), len(plan))]

    first = prepared()
    written = {path: path.stat().st_mtime_ns for path in stored(tmp_path)}
    assert (tmp_path / "run" / "tokens").exists() == (cache_dir == "")
    assert len(written) > 8
    for one, again in zip(first, prepared(), strict=True):
        np.testing.assert_array_equal(one, again)
    assert {path: path.stat().st_mtime_ns for path in stored(tmp_path)} == written


def stored(folder):
    return folder.rglob("*.npy")
