"""The best score, and stopping without a better one."""

import math

import pytest
import tensorflow as tf

from tf_transformer.config import TrainConfig
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.training.early_stopping import EarlyStopping, choose_metric


def test_only_better_scores_are_best():
    stopping = EarlyStopping()
    scores = [1, 1, float("nan"), 0.5, 2, 1.5]
    improved = [stopping.update(score, 3.0, n) for n, score in enumerate(scores)]
    assert improved == [True, False, False, False, True, False]
    assert (stopping.best.numpy(), stopping.best_update.numpy()) == (2.0, 4)


def test_of_equal_scores_the_lower_loss_is_better():
    stopping = EarlyStopping()
    results = [(0, 5.0), (0, 4.0), (0, 4.0), (0, float("nan")), (1, 9.0), (0, 3.0)]
    improved = [stopping.update(*result, n) for n, result in enumerate(results)]
    assert improved == [True, True, False, False, True, False]
    assert (stopping.best_loss.numpy(), stopping.best_update.numpy()) == (9.0, 4)


def test_it_stops_after_patience_scores_without_improvement():
    stopping = EarlyStopping()
    stops = []
    for score in (5, 4, 4, 6, 5, 5, 5):
        stopping.update(score, 1.0, 1)
        stops.append(stopping.should_stop(3))
    assert stops == [False] * 6 + [True]
    assert not stopping.should_stop(0)
    assert stopping.should_stop(1)


def test_it_is_saved_in_checkpoints(tmp_path):
    stopping = EarlyStopping("chrf")
    for score in (3, 2):
        stopping.update(score, 1.5, 7)
    path = tf.train.Checkpoint(stopping=stopping).save(str(tmp_path / "x"))
    restored = EarlyStopping()
    tf.train.Checkpoint(stopping=restored).restore(path).assert_consumed()
    assert not restored.update(2.5, 0.1, 9)
    assert not restored.update(3, 1.6, 9)
    assert restored.should_stop(3)
    assert restored.best_update.numpy() == 7
    assert restored.metric == "chrf"


def test_a_loss_that_is_not_a_number_is_the_worst():
    stopping = EarlyStopping()
    assert stopping.update(1.0, math.nan, 1)
    assert not stopping.update(1.0, math.nan, 2)
    assert stopping.update(1.0, 0.5, 3)
    assert not stopping.update(1.0, 0.5, 4)


@pytest.mark.parametrize(
    ("options", "goes_on", "metric"),
    [
        ({}, False, "chrf"),  # the task's choice for short references
        ({}, True, "bleu"),  # that of earlier versions, unless the checkpoint names another
        ({"metric": "exact_match"}, False, "exact_match"),
        ({"metric": "loss"}, False, "loss"),
        ({"valid_score_examples": 0}, False, "loss"),
    ],
)
def test_the_metric_is_the_users_choice_or_that_of_the_task(options, goes_on, metric):
    references = ["eins", "zwei drei"]
    assert choose_metric(TrainConfig(**options), TRANSLATION, references, goes_on) == metric
