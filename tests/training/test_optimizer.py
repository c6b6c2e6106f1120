"""Adam against NumPy, clipping and skipped updates, on one device and on two."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.training import optimizer as module
from tf_transformer.training.optimizer import Adam
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.training.strategy import make_strategy

STARTS = [np.arange(6, dtype="float32").reshape(2, 3), np.array([1.0, -2.0], "float32")]
BOTH = pytest.mark.parametrize("strategy", ["one", "mirrored"])


def random_gradients(count):
    rng = np.random.default_rng(1)
    return [[rng.normal(size=w.shape).astype("float32") for w in STARTS] for _ in range(count)]


def updated(strategy, gradients, scale=1.0, learning_rate=0.1, **options):
    """(weights, optimizer) after an update with each of the gradients, divided among replicas."""
    strategy = make_strategy(strategy)
    with strategy.scope():
        weights = [keras.Variable(start) for start in STARTS]
        optimizer = Adam(learning_rate, **options)
        optimizer.build(weights)
    part = 1.0 / strategy.num_replicas_in_sync

    def update(*given):
        optimizer.apply([gradient * scale * part for gradient in given], weights)

    run = tf.function(lambda *given: strategy.run(update, args=given))
    for given in gradients:
        run(*map(tf.constant, given))
    return [np.asarray(w) for w in weights], optimizer


def adam_in_numpy(gradients, rates, clip_norm=0.0, beta_1=0.9, beta_2=0.98, epsilon=1e-9):
    """Kingma and Ba 2015, algorithm 1, with its bias correction folded into the rate."""
    weights = [start.astype("float64") for start in STARTS]
    moments = [np.zeros_like(w) for w in weights]
    squares = [np.zeros_like(w) for w in weights]
    for step, (given, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        norm = np.sqrt(sum((g**2).sum() for g in given))
        factor = min(1.0, clip_norm / norm) if clip_norm else 1.0
        alpha = rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        for w, m, v, g in zip(weights, moments, squares, given, strict=True):
            m += (1 - beta_1) * (factor * g - m)
            v += (1 - beta_2) * ((factor * g) ** 2 - v)
            w -= alpha * m / (np.sqrt(v) + epsilon)
    return weights


def assert_same(ours, theirs, tolerance=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance, rtol=0)


@BOTH
@pytest.mark.parametrize("clip_norm", [0.0, 1.0, 100.0])
def test_it_is_adam(strategy, clip_norm):
    gradients = random_gradients(7)
    weights, optimizer = updated(strategy, gradients, clip_norm=clip_norm)
    assert_same(weights, adam_in_numpy(gradients, [0.1] * 7, clip_norm))
    assert int(optimizer.iterations.numpy()) == 7


def test_it_is_keras_adam():
    gradients = random_gradients(7)
    weights = [keras.Variable(start) for start in STARTS]
    theirs = keras.optimizers.Adam(0.1, beta_2=0.98, epsilon=1e-9)
    for given in gradients:
        theirs.apply([tf.constant(g) for g in given], weights)
    assert_same(updated("one", gradients)[0], [np.asarray(w) for w in weights])


def test_the_schedule_counts_updates():
    schedule = TransformerSchedule(d_model=4, warmup_steps=3)
    gradients = random_gradients(5)
    rates = [float(schedule(n)) for n in range(5)]
    weights, _ = updated("one", gradients, learning_rate=schedule)
    assert_same(weights, adam_in_numpy(gradients, rates))


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_gradients_that_are_not_finite_are_skipped(strategy, bad):
    gradients = random_gradients(4)
    spoilt = [g.copy() for g in gradients[0]]
    spoilt[1][0] = bad
    weights, optimizer = updated(strategy, [*gradients[:2], spoilt, *gradients[2:]])
    assert_same(weights, adam_in_numpy(gradients, [0.1] * 4))
    assert int(optimizer.iterations.numpy()) == 4
    assert int(optimizer.skipped.numpy()) == 1
    assert int(optimizer.skipped_in_a_row.numpy()) == 0


def test_updates_skipped_in_a_row_are_counted():
    spoilt = [np.full_like(start, np.nan) for start in STARTS]
    weights, optimizer = updated("one", [*random_gradients(1), spoilt, spoilt])
    assert int(optimizer.skipped_in_a_row.numpy()) == 2
    assert_same(weights, adam_in_numpy(random_gradients(1), [0.1]))


@BOTH
def test_the_average_follows_the_weights(strategy):
    """Oracle: NumPy over the weights after each update."""
    gradients = random_gradients(12)
    average = [start.astype("float64") for start in STARTS]
    for made in range(12):
        decay = min(0.5, made / (made + 9))
        weights = adam_in_numpy(gradients[: made + 1], [0.1] * (made + 1))
        average = [decay * a + (1 - decay) * w for a, w in zip(average, weights, strict=True)]
    _, optimizer = updated(strategy, gradients, average_decay=0.5)
    assert_same([np.asarray(a) for a in optimizer.averages], average)


@BOTH
def test_the_loss_scale_is_divided_out_halves_on_overflow_and_grows(strategy, monkeypatch):
    monkeypatch.setattr(module, "GROW_LOSS_SCALE_AFTER", 3)
    monkeypatch.setattr(module, "LARGEST_LOSS_SCALE", 8.0)
    gradients = random_gradients(1)
    weights, _ = updated(strategy, gradients, scale=8.0, scale_loss=True)
    assert_same(weights, adam_in_numpy(gradients, [0.1]))

    spoilt = [np.full_like(start, np.inf) for start in STARTS]
    scales = [
        float(updated(strategy, series, scale_loss=True)[1].loss_scale.numpy())
        for series in (
            [*gradients],
            [spoilt],
            [spoilt, spoilt],
            [spoilt, spoilt, *gradients * 2],
            [spoilt, spoilt, *gradients * 3],
            [spoilt, *gradients * 2, spoilt, *gradients * 2],
            [spoilt] * 9,
            [*gradients * 9],
        )
    ]
    assert scales == [8, 4, 2, 2, 4, 2, 1, 8]
