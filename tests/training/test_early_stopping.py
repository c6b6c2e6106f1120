"""The best score, and stopping without a better one."""

import tensorflow as tf

from tf_transformer.training.early_stopping import EarlyStopping


def test_only_better_scores_are_best():
    stopping = EarlyStopping()
    scores = [1, 1, float("nan"), 0.5, 2, 1.5]
    improved = [stopping.update(score, n) for n, score in enumerate(scores)]
    assert improved == [True, False, False, False, True, False]
    assert (stopping.best.numpy(), stopping.best_update.numpy()) == (2.0, 4)


def test_it_stops_after_patience_scores_without_improvement():
    stopping = EarlyStopping()
    stops = []
    for score in (5, 4, 4, 6, 5, 5, 5):
        stopping.update(score, 1)
        stops.append(stopping.should_stop(3))
    assert stops == [False] * 6 + [True]
    assert not stopping.should_stop(0)
    assert stopping.should_stop(1)


def test_it_is_saved_in_checkpoints(tmp_path):
    stopping = EarlyStopping()
    for score in (3, 2):
        stopping.update(score, 7)
    path = tf.train.Checkpoint(stopping=stopping).save(str(tmp_path / "x"))
    restored = EarlyStopping()
    tf.train.Checkpoint(stopping=restored).restore(path).assert_consumed()
    assert not restored.update(2.5, 9)
    assert restored.should_stop(2)
    assert restored.best_update.numpy() == 7
