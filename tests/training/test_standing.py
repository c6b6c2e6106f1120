"""The best score, and how long ago it was."""

import tensorflow as tf
from tf_transformer.training.standing import Standing


def test_only_better_scores_are_best():
    standing = Standing()
    notes = [standing.note(score, n) for n, score in enumerate([1, 1, float("nan"), 0.5, 2, 1.5])]
    assert notes == [True, False, False, False, True, False]
    assert (standing.best.numpy(), standing.best_update.numpy()) == (2.0, 4)


def test_it_has_waited_after_as_many_rounds_as_patience_says():
    standing = Standing()
    waited = []
    for score in (5, 4, 4, 6, 5, 5, 5):
        standing.note(score, 1)
        waited.append(standing.has_waited(3))
    assert waited == [False] * 6 + [True]
    assert not standing.has_waited(0)
    assert standing.has_waited(1)


def test_it_is_kept_in_checkpoints(tmp_path):
    standing = Standing()
    for score in (3, 2):
        standing.note(score, 7)
    path = tf.train.Checkpoint(standing=standing).save(str(tmp_path / "x"))
    restored = Standing()
    tf.train.Checkpoint(standing=restored).restore(path).assert_consumed()
    assert not restored.note(2.5, 9)
    assert restored.has_waited(2)
    assert restored.best_update.numpy() == 7
