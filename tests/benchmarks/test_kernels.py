"""benchmarks/kernels: every pair and every threshold is timed, and each side is forced."""

import pytest
import tensorflow as tf

from benchmarks.harness.usage import Usage
from benchmarks.kernels import attention_weights, kernel_probes, pairs, probe, search_probes, timing
from benchmarks.kernels.timing import looped, with_gradients
from tf_transformer import kernels
from tf_transformer.config import DecodeConfig
from tf_transformer.inference.search import Search
from tf_transformer.kernels import attention
from tf_transformer.machine import thresholds

KERNELS = [*pairs.works(small=True)]
PROBES = [*kernel_probes.probes(small=True)]


def test_every_kernel_has_a_pair():
    forms = {name for name, form in kernels.PLAIN._asdict().items() if callable(form)}
    # A gather has its tuned form in the steps of a search alone, for fewer operations.
    assert {work.kernel for work in KERNELS} == forms - {"gather"}


def test_every_threshold_has_a_probe():
    names = {name for name in vars(thresholds) if name.isupper()} - {"MAX_MICRO_BATCHES"}
    probes = [*PROBES, *search_probes.probes(small=True)]
    assert {each.threshold for each in probes} == names
    for each in probes:
        assert each.chosen in each.sides


def test_a_loop_runs_the_function_as_often_as_asked():
    """The sum of x over 4 copies that differ by 1/1024."""
    calls = []

    def function(x):
        calls.append(x)
        return x

    looped(function, [pairs.normal(2, 3)])(7)
    assert len(calls) == 1  # traced once


def test_gradients_are_those_of_the_floats():
    run = with_gradients(lambda x, ids: tf.gather(x, ids))
    (gradient,) = run(tf.constant([0.0, 1.0]), tf.constant([0, 0]))
    assert gradient.numpy().tolist() == [2.0, 0.0]  # cos(0), twice


def test_costs_are_those_of_one_iteration(monkeypatch):
    """By hand: an iteration of the slow loop takes 0.02 s and 3 faults, of the fast one half."""
    monkeypatch.setattr(timing, "usage_of", lambda run: (None, run()))

    def loop(seconds):
        return lambda count: Usage(count * seconds, count * 3, count * seconds / 2)

    found = timing.measured({"slow": loop(0.02), "fast": loop(0.01)})
    assert found["slow"] == pytest.approx((0.02, 3, 0.01))
    assert found["fast"] == pytest.approx((0.01, 3, 0.005))


def test_a_side_is_traced_under_its_own_value():
    name, values = "FEW_QUERIES", {"low": 1, "high": 99}
    sides = probe.forced("kernels.attention", name, values, lambda: attention.FEW_QUERIES)
    assert {side: make() for side, make in sides.items()} == values
    assert attention.FEW_QUERIES == thresholds.FEW_QUERIES


def test_the_cost_of_the_choice_is_its_time_over_the_fastest(monkeypatch):
    usages = {"small products": Usage(3.0, 7, 0.0), "products": Usage(2.0, 9, 0.0)}
    monkeypatch.setattr(probe, "measured", lambda loops: {side: usages[side] for side in loops})
    sides = dict.fromkeys(usages, lambda: None)
    row = probe.timed(probe.Probe("FEW_QUERIES", "8 queries", "small products", sides))
    assert row["value"] == str(thresholds.FEW_QUERIES)
    assert (row["fastest"], row["chosen_over_fastest"]) == ("products", 1.5)
    assert row["times_ms"] == {"small products": 3000, "products": 2000}
    assert row["minor_faults"] == {"small products": 7, "products": 9}


@pytest.mark.parametrize(
    "work",
    [*KERNELS[:3], *(pytest.param(work, marks=pytest.mark.slow) for work in KERNELS[3:])],
    ids=lambda work: f"{work.kernel} {work.work}",
)
def test_a_pair_is_timed(work):
    row = pairs.timed(work)
    assert row["plain_ms"] > 0
    assert row["tuned_ms"] > 0


@pytest.mark.parametrize("each", PROBES, ids=lambda each: f"{each.threshold} {each.size}")
def test_a_threshold_of_kernels_is_timed(each):
    assert probe.timed(each)["chosen_over_fastest"] >= 1


def test_the_model_of_the_search_ends_translations_as_early_as_it_may():
    model = search_probes.make_model(small=True)
    search = Search(model, DecodeConfig(beam_size=4, min_length=2))
    found = search(tf.constant([[5, 6, 7, 8, 2], [9, 10, 11, 12, 2]]))
    assert found.lengths[:, 0].numpy().tolist() == [3, 3]


@pytest.mark.slow
def test_a_threshold_of_the_search_is_timed():
    compaction = next(iter(search_probes.probes(small=True)))
    assert probe.timed(compaction)["chosen_over_fastest"] >= 1


@pytest.mark.slow
def test_the_time_of_attention_weights_is_measured():
    for row in attention_weights.rows(small=True):
        assert row["with_over_without"] > 0
