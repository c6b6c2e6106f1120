"""Weights of a run: averages of checkpoints, the best ones, the moving average."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import small_config, stored_weights, weights_of

from tf_transformer.errors import InputError
from tf_transformer.training import trainer
from tf_transformer.weights import updates_of


def test_average_is_the_mean_of_the_newest_checkpoints(run):
    """Oracle: NumPy's mean of every weight that TensorFlow reads from the checkpoint files."""
    paths = tf.train.get_checkpoint_state(str(run / "checkpoints")).all_model_checkpoint_paths
    first, newest = (stored_weights(path) for path in paths)
    assert len(first) == len(weights_of(run)) > 20
    for averaged, one, other in zip(weights_of(run, average=2), first, newest, strict=True):
        np.testing.assert_allclose(averaged, (one + other) / 2, atol=1e-7)
    for alone, expected in zip(weights_of(run, average=1), newest, strict=True):
        np.testing.assert_array_equal(alone, expected)
    assert any(np.abs(one - other).max() > 1e-6 for one, other in zip(first, newest, strict=True))


def test_fewer_checkpoints_than_asked_for_are_said(run, capsys):
    weights_of(run, average=2)
    assert "average" not in capsys.readouterr().err
    weights_of(run, average=100)
    expected = (
        f"average 100: the weights of 2 checkpoints are averaged, because {run} holds no more"
    )
    assert expected in capsys.readouterr().err


def test_updates_of_the_newest_checkpoints(run):
    assert updates_of(run, 1) == [4]
    assert updates_of(run, 9) == [2, 4]


def test_a_folder_without_checkpoints_is_an_error(run, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(run, broken, ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.raises(InputError, match="holds no checkpoint; train first"):
        weights_of(broken)


def test_the_moving_average_is_loaded_and_differs_from_the_weights(tmp_path):
    """Its values are checked in test_optimizer.py."""
    trainer.train(small_config(average_decay=0.9), tmp_path)
    average, last = weights_of(tmp_path, average="ema"), weights_of(tmp_path, average=1)
    assert all(1e-6 < np.abs(a - b).max() < 0.1 for a, b in zip(average, last, strict=True))


def test_a_moving_average_that_was_not_kept_is_an_error(run):
    with pytest.raises(InputError, match=r"holds no moving average.*--train.average_decay 0\.999"):
        weights_of(run, average="ema")
