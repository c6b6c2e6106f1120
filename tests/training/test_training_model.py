"""One update is the same on one device and on two; `fit` drives it on both."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.config import ModelConfig
from tf_transformer.data.batching import as_dataset
from tf_transformer.model import Transformer
from tf_transformer.training.strategy import make_strategy
from tf_transformer.training.training_model import TrainingModel, shift_right

VOCABULARY = 23


def unequal_batches(count, seed=0):
    """Batches whose two halves hold very different numbers of real tokens."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        source = rng.integers(4, VOCABULARY, (6, 7)).astype(np.int32)
        labels = rng.integers(4, VOCABULARY, (6, 5)).astype(np.int32)
        source[3:, 2:] = 0
        labels[3:, 1:] = 0
        yield source, labels


def small_model(dropout_rate):
    return ModelConfig(num_layers=2, d_model=8, d_ff=12, num_heads=2, dropout_rate=dropout_rate)


def trained(strategy_name, updates=3, jit=False, dropout_rate=0.0, batches=unequal_batches):
    """(weights, metrics) after some updates, from the same start each time."""
    keras.utils.set_random_seed(1)
    with make_strategy(strategy_name).scope():
        transformer = Transformer(VOCABULARY, small_model(dropout_rate))
        transformer.build()
        model = TrainingModel(transformer, label_smoothing=0.1, jit=jit)
        model.compile(optimizer=keras.optimizers.Adam(1e-2, beta_2=0.98, epsilon=1e-9))
        model.optimizer.build(transformer.trainable_variables)
    history = model.fit(
        as_dataset(lambda: batches(updates)), steps_per_epoch=updates, verbose=0, shuffle=False
    )
    return [np.asarray(w) for w in transformer.weights], history.history


def assert_same(ours, theirs, tolerance=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance, rtol=0)


def test_two_replicas_equal_one_after_three_updates_with_unequal_padding():
    one_weights, one_metrics = trained("one")
    two_weights, two_metrics = trained("mirrored")
    assert_same(one_weights, two_weights)
    for name, values in one_metrics.items():
        np.testing.assert_allclose(values, two_metrics[name], rtol=1e-5)


def test_updates_move_the_weights_far_more_than_replicas_may_differ():
    before, _ = trained("one", updates=1)
    after, _ = trained("one", updates=3)
    assert max(np.abs(b - a).max() for b, a in zip(before, after, strict=True)) > 1e-3


def test_a_replica_of_padding_alone_changes_nothing():
    """Rows of padding, which fill a batch up to the replicas, have no part in the update."""

    def filled_up(count):
        for source, labels in unequal_batches(count):
            yield np.pad(source, [(0, 6), (0, 0)]), np.pad(labels, [(0, 6), (0, 0)])

    assert_same(trained("one")[0], trained("mirrored", batches=filled_up)[0])


def test_dropout_trains_on_two_replicas():
    weights, metrics = trained("mirrored", dropout_rate=0.3)
    assert all(np.isfinite(w).all() for w in weights)
    assert np.isfinite(metrics["loss"][0])


def test_xla_makes_the_same_updates():
    assert_same(trained("one")[0], trained("one", jit=True)[0])


def test_the_loss_of_an_update_is_the_mean_over_the_global_batch():
    """Oracle: the metrics of one batch, computed in one piece by NumPy."""
    (batch,) = unequal_batches(1)
    keras.utils.set_random_seed(1)
    transformer = Transformer(VOCABULARY, small_model(dropout_rate=0.0))
    transformer.build()
    source, labels = batch
    logits = np.asarray(transformer((source, np.asarray(shift_right(tf.constant(labels))))))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    expected = nll[labels != 0].mean()
    _, metrics = trained("mirrored", updates=1)
    np.testing.assert_allclose(np.log(metrics["perplexity"][0]), expected, rtol=1e-5)


def test_shift_right_by_hand():
    shifted = shift_right(tf.constant([[7, 8, 2], [9, 2, 0]]))
    assert shifted.numpy().tolist() == [[1, 7, 8], [1, 9, 2]]


def test_unknown_strategy_is_an_error():
    with pytest.raises(ValueError, match="must be auto, one or mirrored, got 'many'"):
        make_strategy("many")
