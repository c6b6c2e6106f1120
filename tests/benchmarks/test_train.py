"""benchmarks/train: its table, its options, and the checks that refuse a false speed."""

import json
import math

import numpy as np
import pytest

from benchmarks.harness.processes import ProcessError
from benchmarks.harness.shapes import SHAPES, Shape
from benchmarks.harness.speed import Measurement, Place, speeds_of
from benchmarks.harness.tasks import Setting
from benchmarks.harness.usage import Usage
from benchmarks.harness.worker import function_at
from benchmarks.train import __main__ as command
from benchmarks.train import report, systems, workload
from benchmarks.train.workload import CELLS, Cell
from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.position import sinusoids
from tf_transformer.models.transformer import Transformer

SMALL = Shape(1, 16, 32, 2, 50)
CELL = Cell(sentences=3, tokens=5)


@pytest.mark.parametrize("name", ["base", "big", "tiny"])
def test_the_formula_counts_the_parameters_of_our_model(name):
    """By the weights' own shapes; a small vocabulary, which the formula has as a factor."""
    shape = SHAPES[name]._replace(vocabulary_size=10)
    sizes = shape._asdict()
    model = Transformer(sizes.pop("vocabulary_size"), ModelConfig(**sizes))
    model.build()
    assert workload.parameters(shape) == model.count_params()


def test_batches_are_the_same_for_all_and_have_no_padding():
    made, again = workload.batches(SMALL, CELL), workload.batches(SMALL, CELL)
    assert len(made) == 4
    for batch, same in zip(made, again, strict=True):
        for ids, equal in zip(batch, same, strict=True):
            assert ids.shape == (3, 5)
            assert ids.dtype == np.int32
            np.testing.assert_array_equal(ids, equal)
        assert min(batch.source.min(), batch.labels.min()) >= 4
        assert (batch.target[:, 0] == 1).all()
        np.testing.assert_array_equal(batch.target[:, 1:], batch.labels[:, :-1])


def test_positions_are_those_of_our_model():
    found = workload.sinusoids(SMALL, 5)
    np.testing.assert_allclose(found, sinusoids(np.arange(5), 16), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("factor", "refused"), [(0.97, True), (1.01, False), (1.03, True)])
def test_a_model_of_another_size_is_refused(factor, refused):
    """By hand: 4 layers of (4 + 2·4) · 128² in attention, 2 · (2 · 128 · 256 + 256 + 128) in
    feed-forward and 5 norms of 256, and 8,000 embeddings of 128.
    """
    shape, expected = SHAPES["tiny"], 2_342_912
    assert workload.parameters(shape) == expected
    if refused:
        with pytest.raises(RuntimeError, match="expected about 2,342,912 parameters"):
            workload.check_parameters(round(factor * expected), shape)
    else:
        workload.check_parameters(round(factor * expected), shape)


@pytest.mark.parametrize(
    ("losses", "text"),
    [
        ([9.0, math.nan, 8.0], "expected finite losses, got 9.000, nan, 8.000"),
        ([9.0, math.inf], "expected finite losses"),
        ([12.0, 8.0], "expected a first loss near 8.987, got 12.000, 8.000"),
        ([6.0, 5.0], "expected a first loss near 8.987"),
        ([9.0, 8.9, 9.0], "expected losses that fall, got 9.000, 8.900, 9.000"),
    ],
)
def test_a_training_that_does_not_train_is_refused(losses, text):
    """ln 8,000 is 8.987."""
    workload.check_losses([9.5, 9.6, 9.4], 8000)
    with pytest.raises(RuntimeError, match=text):
        workload.check_losses(losses, 8000)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["tf_transformer", "keras"])
def test_a_run_makes_an_update_with_each_batch(system, tmp_path):
    """Untrained weights on 50 ids: the loss starts near ln 50 = 3.912 and falls."""
    found = systems.SYSTEMS[system]
    setting = Setting(SMALL, tmp_path, tmp_path)
    task = function_at(found.task)(setting, CELL, **found.task_options)
    assert task.parameters == workload.parameters(SMALL)
    assert (task.tokens, task.steps) == (4 * 3 * 5, 4)
    losses = [task.check(task.run()) for _ in range(30)]
    workload.check_losses(losses, 50)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["tf_transformer", "keras", "torch"])
def test_padding_of_a_text_does_not_count(system, tmp_path, monkeypatch):
    """Without dropout, a batch has the same first loss with more padding, in every system."""
    if systems.missing(system):
        pytest.skip(f"{system} is not installed")
    found, losses = systems.SYSTEMS[system], []
    module = found.task.partition(":")[0]
    monkeypatch.setattr(f"{module}.DROPOUT", 0.0)
    source, labels = np.array([[5, 6, 7, 2]], np.int32), np.array([[8, 9, 2]], np.int32)
    for padding in (0, 3):
        padded = [np.pad(ids, ((0, 1), (0, padding))) for ids in (source, labels)]
        for ids in padded:
            ids[1, :2] = 10, 2
        workload.write_batches(tmp_path, [tuple(padded)])
        setting = Setting(SMALL, tmp_path, tmp_path)
        task = function_at(found.task)(setting, Cell(0, 8), **found.task_options)
        assert (task.tokens, task.steps) == (5, 1)
        losses.append(task.check(task.run()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_loss_that_keras_smooths_is_the_paper_s():
    """In NumPy: cross-entropy with 0.9 on the label and 0.1 over all ids."""
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(2, 3, 7)).astype("float32"), rng.integers(0, 7, (2, 3))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -(log_p * (0.9 * np.eye(7)[labels] + 0.1 / 7)).sum(-1)
    smoothed = function_at("benchmarks.train.keras_fit:smoothed_cross_entropy")
    np.testing.assert_allclose(smoothed(labels, logits), expected, rtol=0, atol=1e-5)


def measured(system, seconds, shape="tiny"):
    cell = CELLS[shape]
    usages = [Usage(each, 40, 0.02) for each in seconds]
    place = Place(shape, system, cell)
    return Measurement(
        place, 4 * cell.sentences * cell.tokens, 4, 2_342_912, usages, [9.5, 9.25], 12.3
    )


def speeds():
    """By hand: a run of tiny has 4 · 64 · 24 = 6,144 tokens."""
    found = [
        *(measured("tf_transformer", [1.0]), measured("torch", [3.0]), measured("flax", [2.0])),
        measured("flax", [0.001], "base"),
    ]
    return speeds_of(found), {each.place: each for each in found}


def test_a_table_shows_speed_and_ratio_to_the_fastest_other():
    names = ["tf_transformer", "tf_transformer_xla", "torch", "flax"]
    assert report.table(*speeds(), "tiny", CELLS["tiny"], names).split("\n") == [
        "tiny: 4 layers, d_model 128, d_ff 256, 4 heads, vocabulary 8,000; "
        "64 × 24 tokens per update",
        "",
        "| system | tokens/s | to the fastest other | parameters | loss | s to warm up |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| `tf_transformer` | 6,144 | 2.00 | 2,342,912 | 9.500 to 9.250 | 12 |",
        "| `torch` | 2,048 | 0.67 | 2,342,912 | 9.500 to 9.250 | 12 |",
        "| `flax` | 3,072 | 1.00 | 2,342,912 | 9.500 to 9.250 | 12 |",
    ]


def test_without_another_system_a_table_has_no_ratios():
    found = [measured("tf_transformer", [1.0]), measured("tf_transformer_xla", [2.0])]
    last = {each.place: each for each in found}
    table = report.table(speeds_of(found), last, "tiny", CELLS["tiny"], ["tf_transformer"])
    assert "| `tf_transformer` | 6,144 | – |" in table
    rows = report.rows_of(speeds_of(found), last)
    assert [row["ratio_to_fastest_other"] for row in rows] == [None, None]


@pytest.fixture
def calls(monkeypatch):
    """The calls of processes that are not started, with the environment of each."""
    made = []

    class Process:
        def __init__(self, environment):
            self.environment = environment

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def call(self, place, **arguments):
            system, warm_up = arguments["system"], arguments.get("warm_up", 0)
            made.append((system, warm_up, self.environment))
            if system == "marian":
                raise ProcessError("out of memory")
            parameters = 7 if system == "keras_hub" else 2_342_912
            usages = [] if warm_up else [[1.0, 40, 0.02]]
            values = [9.5, 9.25] if warm_up else [9.0]
            return {"tokens": 6144, "steps": 4, "parameters": parameters} | {
                "usages": usages,
                "values": values,
            }

    monkeypatch.setattr(command, "Process", Process)
    monkeypatch.setattr(command, "missing", lambda name: ["optax"] * (name == "flax"))
    return made


OPTIONS = {"shapes": "tiny", "rounds": 1, "updates": 5}


def test_systems_take_turns_and_a_missing_one_is_named(calls, capsys, tmp_path):
    output = tmp_path / "results.json"
    options = OPTIONS | {"systems": "tf_transformer,flax,torch", "rounds": 2}
    command.main(**options, output=str(output))
    turn = [("tf_transformer", 2), ("torch", 2)] + [("tf_transformer", 0), ("torch", 0)] * 2
    assert [call[:2] for call in calls] == turn * 2
    printed = capsys.readouterr().out
    assert "skipped: flax (needs optax)" in printed
    assert "| `torch` | 64 × 24 tokens | 10 | 5.0 | 250.0 |" in printed
    result = json.loads(output.read_text("utf-8"))
    assert result["skipped"] == {"flax": ["optax"]}
    for row in result["measurements"]:
        assert row["ratio_to_fastest_other"] == 1
        assert (row["first_loss"], row["last_loss"], row["minor_faults"]) == (9.5, 9.0, 10)


def test_the_memory_is_that_of_all_systems(calls):
    options = OPTIONS | {"systems": "tf_transformer,torch"}
    for malloc, huge in (("kept", False), ("huge_pages", True)):
        calls.clear()
        command.main(**options, malloc=malloc)
        assert {"GLIBC_TUNABLES" in environment for *_, environment in calls} == {huge}


@pytest.mark.parametrize(
    ("system", "reason"),
    [("marian", "out of memory"), ("keras_hub", "expected about 2,342,912 parameters, got 7.")],
)
def test_a_failed_system_makes_the_command_fail(calls, capsys, system, reason):
    with pytest.raises(SystemExit) as caught:
        command.main(**OPTIONS, systems=f"{system},torch")
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert f"failed: tiny {system} ({reason})" in printed
    assert "| `torch` | 6,144 | 1.00 |" in printed


@pytest.mark.parametrize(("found", "lacks"), [(None, ["a C++ compiler"]), ("/usr/bin/g++", [])])
def test_torch_compile_needs_a_compiler(monkeypatch, found, lacks):
    monkeypatch.setattr(systems, "not_installed", lambda packages: [])
    monkeypatch.setattr(systems.shutil, "which", lambda name: found)
    assert systems.missing("torch_compile") == lacks
    assert systems.missing("torch") == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"systems": "keras,marien"}, "unknown name 'marien'"),
        ({"shapes": "big"}, "expected some of base, tiny"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"updates": 0}, "updates must be at least 1, got 0"),
    ],
)
def test_bad_options_are_errors_of_the_user(calls, options, text):
    with pytest.raises(InputError, match=text):
        command.main(**options)
    assert not calls
