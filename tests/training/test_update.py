"""One update is the same on one device and on two, in one batch and in several."""

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.config import ModelConfig
from tf_transformer.losses.consistency import SimCut
from tf_transformer.losses.cross_entropy import CrossEntropy, WordDropout
from tf_transformer.models.transformer import Transformer
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.text.sequences import shift_right
from tf_transformer.training.strategy import make_strategy, replica_batches
from tf_transformer.training.update import Updater, make_optimizer

VOCABULARY = 23


def unequal_batches(count, rows=6, seed=0):
    """Batches whose rows hold very different numbers of real tokens.

    The numbers differ between batches, too: Adam cancels a factor that is the same for all.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        source = rng.integers(4, VOCABULARY, (rows, 7)).astype(np.int32)
        labels = rng.integers(4, VOCABULARY, (rows, 5)).astype(np.int32)
        source[rows // 2 :, 2:] = 0
        labels[rows // 2 :, 1 + number % 4 :] = 0
        yield {"source": source, "target": labels}


def halves(batches):
    """Each batch as two, the first with nearly all tokens."""
    for batch in batches:
        middle = len(batch["source"]) // 2
        yield {name: ids[:middle] for name, ids in batch.items()}
        yield {name: ids[middle:] for name, ids in batch.items()}


def small_model(dropout_rate, **options):
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}
    return ModelConfig(**sizes, dropout_rate=dropout_rate, **options)


def trained(
    strategy="one",
    batches=None,
    accumulate=1,
    jit_compile=False,
    dropout_rate=0.0,
    dtype="float32",
    remat=False,
    decoder_attention="same",
    micro_batches=1,
    loss=None,
    learning_rate=1e-2,
    **optimizer_options,
):
    """(weights, metrics, updater) after some updates, always from the same start."""
    batches = list(unequal_batches(20)) if batches is None else batches
    strategy = make_strategy(strategy)
    keras.utils.set_random_seed(1)
    with strategy.scope():
        config = small_model(dropout_rate, remat=remat, decoder_attention=decoder_attention)
        transformer = Transformer(VOCABULARY, config, dtype=dtype)
        transformer.build()
        optimizer = make_optimizer(transformer, learning_rate, **optimizer_options)
        loss = loss or CrossEntropy(0.1)
        updater = Updater(TRANSLATION, transformer, optimizer, loss, jit_compile, micro_batches)
    with sharded(strategy, batches, accumulate) as data:
        for _ in range(len(batches) // accumulate):
            updater.update(data)
    return [np.asarray(w) for w in transformer.weights], updater.read_metrics(), updater


def sharded(strategy, batches, size=1):
    return replica_batches(strategy, tuple(batches[0]), lambda: iter(batches), size)


one_device = functools.cache(trained)  # the reference of comparisons


@functools.cache
def trained_on(count, rows=6, **options):
    """`trained` on so many unequal batches."""
    return trained(batches=list(unequal_batches(count, rows)), **options)


def assert_same(ours, theirs, tolerance=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance, rtol=0)


def largest_difference(ours, theirs):
    return max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("clip_norm", [pytest.param(0.0, marks=pytest.mark.slow), 0.05])
def test_two_replicas_equal_one_after_20_updates_with_unequal_padding(clip_norm):
    one_weights, one_metrics, _ = one_device(clip_norm=clip_norm)
    two_weights, two_metrics, _ = trained("mirrored", clip_norm=clip_norm)
    assert_same(one_weights, two_weights)
    for name, value in one_metrics.items():
        np.testing.assert_allclose(value, two_metrics[name], rtol=1e-5)


@pytest.mark.parametrize("strategy", [pytest.param("one", marks=pytest.mark.slow), "mirrored"])
def test_the_gradient_norm_is_that_of_the_whole_batch_before_clipping(strategy):
    """Oracle: a tape over the mean loss of a batch, without dropout."""
    batches = list(unequal_batches(1))
    _, _, updater = trained(strategy, batches, clip_norm=1e-3, learning_rate=0.0)
    with tf.GradientTape() as tape:
        losses = TRANSLATION.losses(updater.model, batches[0], CrossEntropy(0.1), training=False)
        loss = losses.loss / losses.tokens
    weights = [weight.value for weight in updater.model.trainable_variables]
    gradients = [tf.convert_to_tensor(each) for each in tape.gradient(loss, weights)]
    expected = np.sqrt(sum((np.asarray(each) ** 2).sum() for each in gradients))
    np.testing.assert_allclose(updater.read_gradient_norm(), expected, rtol=1e-5)
    assert math.isnan(updater.read_gradient_norm())


@pytest.mark.parametrize(
    ("strategy", "clip_norm"),
    [
        ("mirrored", 0.05),
        *(pytest.param(x, 0.0, marks=pytest.mark.slow) for x in ("one", "mirrored")),
    ],
)
def test_two_accumulated_batches_equal_one_twice_as_big(strategy, clip_norm):
    whole, metrics, _ = one_device(clip_norm=clip_norm)
    batches = list(halves(unequal_batches(20)))
    weights, accumulated, updater = trained(strategy, batches, accumulate=2, clip_norm=clip_norm)
    assert_same(whole, weights)
    assert updater.updates == 20
    for name, value in metrics.items():
        np.testing.assert_allclose(value, accumulated[name], rtol=1e-5)


@pytest.mark.parametrize(
    ("micro_batches", "options"),
    [
        pytest.param(2, {}, marks=pytest.mark.slow),
        (4, {"clip_norm": 0.05}),
        (2, {"accumulate": 2}),
        pytest.param(2, {"strategy": "mirrored", "accumulate": 2}, marks=pytest.mark.slow),
    ],
)
def test_micro_batches_make_the_update_of_the_whole_batch(micro_batches, options):
    """Six rows in four micro-batches: of unequal sizes, with unequal numbers of tokens."""
    whole, metrics, _ = one_device(clip_norm=options.get("clip_norm", 0.0))
    batches = list(unequal_batches(20))
    if "accumulate" in options:
        batches = list(halves(batches))
    weights, divided, updater = trained(batches=batches, micro_batches=micro_batches, **options)
    assert_same(whole, weights)
    assert updater.updates == 20
    for name, value in metrics.items():
        np.testing.assert_allclose(value, divided[name], rtol=1e-5)


class HidesEvenIds(SimCut):
    """SimCut without random numbers."""

    def second(self, inputs):
        return keras.tree.map_structure(lambda ids: tf.where(ids % 2 == 0, ids // 4, ids), inputs)


@pytest.mark.parametrize(
    "options",
    [
        {"micro_batches": 2},
        pytest.param({"accumulate": 2}, marks=pytest.mark.slow),
        pytest.param({"strategy": "mirrored"}, marks=pytest.mark.slow),
    ],
)
def test_a_divergence_is_that_of_the_whole_batch_however_it_is_divided(options):
    loss = HidesEvenIds(0.1, weight=3.0, cut=WordDropout(0.5))
    batches = list(unequal_batches(4))
    whole, metrics, _ = trained(batches=batches, loss=loss)
    parts = list(halves(batches)) if "accumulate" in options else batches
    weights, divided, _ = trained(batches=parts, loss=loss, **options)
    assert_same(whole, weights)
    assert divided["loss"] == pytest.approx(metrics["loss"], rel=1e-5)
    assert largest_difference(whole, trained_on(4)[0]) > 1e-3


def test_fewer_rows_than_micro_batches():
    """Some micro-batches are empty."""
    batches = list(unequal_batches(3, rows=1))
    assert_same(trained_on(3, rows=1)[0], trained(batches=batches, micro_batches=3)[0])


def test_losses_of_a_skipped_update_are_left_out_of_the_metrics(monkeypatch):
    """One of two updates has NaN; without it, the metrics are those of the other."""
    good, bad = unequal_batches(2)
    bad["source"][:] = VOCABULARY - 1
    losses = type(TRANSLATION).losses

    def nan_for_bad(self, model, batch, *options):
        found = losses(self, model, batch, *options)
        is_bad = tf.reduce_all(batch["source"] == VOCABULARY - 1)
        return found._replace(loss=found.loss * tf.where(is_bad, math.nan, 1.0))

    _, expected, _ = trained(batches=[good])
    monkeypatch.setattr(type(TRANSLATION), "losses", nan_for_bad)
    _, metrics, updater = trained(batches=[good, bad])
    assert (updater.updates, updater.next_batch) == (1, 2)
    assert metrics == pytest.approx(expected)
    _, metrics, updater = trained(batches=[bad])
    assert all(map(math.isnan, metrics.values()))
    assert math.isnan(updater.read_gradient_norm())


def test_validation_in_micro_batches_finds_the_metrics_of_the_whole():
    batches = list(unequal_batches(3))
    found = []
    for micro_batches in (1, 4):
        *_, updater = trained(batches=batches[:1], micro_batches=micro_batches)
        with sharded(make_strategy("one"), batches) as data:
            for _ in batches:
                updater.validate(data)
        found.append(updater.read_metrics())
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], rtol=1e-5)


@pytest.mark.parametrize("dropout_rate", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
def test_each_micro_batch_draws_noise_of_its_own(dropout_rate):
    """The loss of a row, and of the same row in two micro-batches."""
    (row,) = unequal_batches(1, rows=1)
    twice = {name: np.repeat(ids, 2, axis=0) for name, ids in row.items()}
    _, once, _ = trained(batches=[row], dropout_rate=dropout_rate)
    _, divided, _ = trained(batches=[twice], dropout_rate=dropout_rate, micro_batches=2)
    assert (abs(once["loss"] - divided["loss"]) > 1e-4) == bool(dropout_rate)


@pytest.mark.slow
def test_micro_batches_make_the_same_updates_bit_for_bit_when_repeated():
    batches = list(unequal_batches(3))
    runs = [trained(batches=batches, dropout_rate=0.3, micro_batches=2)[0] for _ in range(2)]
    assert_same(*runs, tolerance=0)


def test_updates_move_the_weights_far_more_than_replicas_may_differ():
    before, after = (trained_on(count)[0] for count in (1, 3))
    assert largest_difference(before, after) > 1e-3


def test_clipping_changes_the_weights():
    assert largest_difference(one_device(clip_norm=0.05)[0], one_device(clip_norm=0.0)[0]) > 1e-3


def test_fewer_rows_than_replicas():
    """One replica has padding only."""
    batches = list(unequal_batches(3, rows=1))
    assert_same(trained_on(3, rows=1)[0], trained("mirrored", batches)[0])


@pytest.mark.slow
def test_dropout_trains_on_two_replicas():
    weights, metrics, _ = trained("mirrored", dropout_rate=0.3)
    assert all(np.isfinite(w).all() for w in weights)
    assert np.isfinite(metrics["loss"])


@pytest.mark.parametrize(
    ("micro_batches", "kind"),
    [
        (4, "same"),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((1, "same"), (4, "ssru"))),
    ],
)
def test_xla_makes_the_same_updates(micro_batches, kind):
    """Of six rows in four micro-batches, two have a row of padding."""
    whole, compiled = (
        trained_on(3, decoder_attention=kind, **options)[0]
        for options in ({}, {"jit_compile": True, "micro_batches": micro_batches})
    )
    assert_same(whole, compiled)


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_jit_compile_compiles_losses_and_gradients_but_not_adam(jit_compile):
    batches = list(unequal_batches(1))
    *_, updater = trained(batches=batches, jit_compile=jit_compile)
    with sharded(make_strategy("one"), batches) as data:
        graph = updater.update.get_concrete_function(data).graph.as_graph_def()
    compiled = [each for each in graph.library.function if each.attr["_XlaMustCompile"].b]
    ops = {node.op for each in compiled for node in each.node_def}
    assert ("MatMul" in ops) == jit_compile
    assert not {op for op in ops if "Adam" in op}


@pytest.mark.parametrize("strategy", ["one", pytest.param("mirrored", marks=pytest.mark.slow)])
def test_rematerialised_layers_make_the_same_updates(strategy):
    """With dropout: both computations of a layer draw the same noise."""
    batches = list(unequal_batches(3))
    kept, again = (
        trained(strategy, batches, dropout_rate=0.3, remat=remat)[0] for remat in (False, True)
    )
    assert_same(kept, again)


@pytest.mark.parametrize(
    ("strategy", "dtype"),
    [
        pytest.param("one", "mixed_bfloat16", marks=pytest.mark.slow),
        ("mirrored", "mixed_float16"),
    ],
)
def test_mixed_precision_learns_what_float32_learns(strategy, dtype):
    weights, metrics, _ = trained(strategy, dtype=dtype, scale_loss=dtype == "mixed_float16")
    assert all(w.dtype == "float32" for w in weights)
    np.testing.assert_allclose(metrics["loss"], one_device()[1]["loss"], rtol=0.02)


def test_a_loss_scale_that_is_a_power_of_two_changes_nothing():
    assert_same(trained_on(3, scale_loss=True)[0], trained_on(3)[0], 1e-7)


def test_the_loss_of_an_update_is_the_mean_over_the_global_batch():
    """Oracle: the metrics of one batch, computed in one piece by NumPy."""
    (batch,) = unequal_batches(1)
    keras.utils.set_random_seed(1)
    transformer = Transformer(VOCABULARY, small_model(dropout_rate=0.0))
    transformer.build()
    source, labels = batch["source"], batch["target"]
    logits = np.asarray(transformer((source, np.asarray(shift_right(tf.constant(labels))))))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    expected = nll[labels != 0].mean()
    _, metrics, _ = trained("mirrored", [batch])
    np.testing.assert_allclose(np.log(metrics["perplexity"]), expected, rtol=1e-5)
