"""Executions of updates: those that are possible, their threads, and the choice of the fastest."""

import functools
import os
import pathlib

import pytest
import tensorflow as tf
from conftest import small_config

from tf_transformer import kernels, tasks
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.training import autotuning, preparation, setup
from tf_transformer.training.setup import Execution, possible_executions

PLAIN_2, PLAIN_1 = Execution(False, 2), Execution(False, 1)
COMPILED_1, COMPILED_2 = Execution(True, 1), Execution(True, 2)


@pytest.fixture
def threads(monkeypatch):
    """TensorFlow's settings, {"inter_op": …, "intra_op": …}, and the devices of the machine."""
    settings, machine = {}, {"GPU": [], "CPU": ["cpu"]}
    monkeypatch.setattr(tf.config, "get_visible_devices", machine.get)
    for kind in ("inter_op", "intra_op"):
        setter = f"set_{kind}_parallelism_threads"
        record = functools.partial(settings.__setitem__, kind)
        monkeypatch.setattr(tf.config.threading, setter, record)
    monkeypatch.setattr(setup, "available_cores", lambda: 6)
    return settings, machine


@pytest.mark.parametrize(
    ("micro_batches", "count", "per_operation"), [(6, 0, 1), (3, 3, 1), (8, 19, 2), (4, 2, 1)]
)
def test_threads_are_divided_between_micro_batches(threads, micro_batches, count, per_operation):
    Execution(False, micro_batches).use_threads(count)
    assert threads[0] == {"inter_op": count or 6, "intra_op": per_operation}


def test_threads_stay_as_they_are_where_there_is_a_gpu(threads):
    settings, machine = threads
    machine["GPU"] = ["gpu"]
    Execution(False, 2).use_threads(2)
    assert settings == {}


def test_threads_stay_as_they_are_once_tensorflow_has_computed():
    tf.zeros(1)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    Execution(False, 1).use_threads(before + 1)
    assert tf.config.threading.get_intra_op_parallelism_threads() == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [Execution(False, 6), PLAIN_1, COMPILED_1, Execution(True, 6)]),
        ({"threads": 1}, [PLAIN_1, COMPILED_1]),
        ({"threads": 19, "jit_compile": False}, [Execution(False, 8), PLAIN_1]),
        ({"threads": 2, "jit_compile": True}, [COMPILED_1, COMPILED_2]),
        ({"micro_batches": 3}, [Execution(False, 3), Execution(True, 3)]),
        ({"micro_batches": 3, "jit_compile": True}, [Execution(True, 3)]),
    ],
)
def test_options_leave_some_executions(threads, options, expected):
    found = possible_executions(small_config(**({"threads": 0} | options)).train)
    assert found == expected + [each._replace(kernels="plain") for each in expected]


def test_kernels_in_use_leave_no_choice(threads):
    with kernels.use(kernels.PLAIN):
        found = possible_executions(small_config(jit_compile=False).train)
    assert found == [Execution(False, 2, "plain"), Execution(False, 1, "plain")]


@pytest.mark.parametrize("options", [{}, {"jit_compile": True, "micro_batches": 2}])
def test_on_a_gpu_nothing_is_measured(threads, options):
    threads[1]["GPU"] = ["gpu"]
    found = possible_executions(small_config(**options).train)
    assert found == [COMPILED_2 if options else PLAIN_1]


@pytest.fixture
def choose(tmp_path, monkeypatch):
    """Chooses for a training run of 50 updates with 7 shapes; `costs` replace the measurements."""
    monkeypatch.setattr(autotuning, "LONG_TRAINING", 0)

    def choose(costs, run="run", cache="cache", **options):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        monkeypatch.setattr(autotuning, "_cost", lambda each, *_: costs[each])
        config = small_config(**({"steps": 50} | options))
        run = Run.at(tmp_path / run, config)
        data = preparation.prepare(run, tasks.for_run(config))
        return autotuning.choose_execution(run, data.train)

    return choose


FORMS = [PLAIN_2, PLAIN_1, COMPILED_1, COMPILED_2]
SLOW = dict.fromkeys(FORMS + [each._replace(kernels="plain") for each in FORMS], (1.0, 9.0))
BROKEN = dict.fromkeys(SLOW)


def test_the_execution_with_the_least_time_is_chosen_and_told(choose, capsys):
    assert choose(SLOW | {PLAIN_1: (1.0, 8.0)}) == PLAIN_1
    assert "not compiled, 1 micro-batch, tuned kernels 8 s" in capsys.readouterr().out


def test_other_kernels_are_measured_in_the_fastest_form(choose):
    plain = PLAIN_1._replace(kernels="plain")
    costs = dict.fromkeys(FORMS, (1.0, 9.0)) | {PLAIN_1: (1.0, 8.0)}
    assert choose(costs | {plain: (1.0, 7.0)}, cache="one") == plain
    assert choose(costs | {plain: None}, cache="two") == PLAIN_1


def test_xla_compiles_each_shape(choose):
    """By hand: 9 s + 50 · 3 s; compiled 7 · (1 s or 1.3 s) + 50 · 3 s."""
    costs = SLOW | {PLAIN_2: (9.0, 3.0)}
    assert choose(costs | {COMPILED_1: (1.0, 3.0)}, cache="one") == COMPILED_1
    assert choose(costs | {COMPILED_1: (1.3, 3.0)}, cache="two") == PLAIN_2


def test_executions_that_fail_are_not_chosen(choose):
    assert choose(BROKEN | {COMPILED_2: (1.0, 1.0)}, cache="one") == COMPILED_2
    assert choose(BROKEN, cache="two") == PLAIN_2


@pytest.mark.parametrize("options", [{"deterministic": True}, {"micro_batches": 2}])
def test_nothing_is_measured_where_the_execution_is_known(choose, options):
    known = {"jit_compile": False} if "micro_batches" in options else {}
    with kernels.use(kernels.PLAIN if known else kernels.current()):
        chosen = choose({}, **options, **known)
    assert chosen == PLAIN_2._replace(kernels="plain" if known else "tuned")


def test_nothing_is_measured_for_a_short_training(choose, monkeypatch):
    monkeypatch.setattr(autotuning, "LONG_TRAINING", 4e14)
    assert choose({}) == PLAIN_2


def test_a_machine_measures_a_training_once(choose):
    assert choose(SLOW | {COMPILED_1: (1.0, 1.0)}) == COMPILED_1
    assert choose({}, run="another") == COMPILED_1


@pytest.mark.parametrize("home", ["none", "a file", "damaged"])
def test_measurements_need_no_home(choose, tmp_path, monkeypatch, home):
    """The cache is an option: its folder may be missing, unusable or hold something else."""
    if home == "none":
        monkeypatch.setattr(pathlib.Path, "home", raising(RuntimeError("no home")))
        monkeypatch.setattr(os.environ, "get", lambda name, default=None: default)
    elif home == "a file":
        (tmp_path / "cache").write_text("")
    assert choose(SLOW | {COMPILED_1: (1.0, 1.0)}) == COMPILED_1
    if home == "damaged":
        (file,) = (tmp_path / "cache" / "tf_transformer").iterdir()
        for number, content in enumerate(("", "{", "[]", "\0")):
            file.write_text(content)
            assert choose(SLOW | {PLAIN_1: (1.0, 1.0)}, run=f"run{number}") == PLAIN_1


def raising(error):
    def fail(*arguments, **options):
        raise error

    return fail


def test_a_run_that_goes_on_keeps_its_execution_unless_the_options_forbid_it(choose, tmp_path):
    assert choose(SLOW | {COMPILED_1: (1.0, 1.0)}) == COMPILED_1
    checkpoint = RunFolder(tmp_path / "run").resume / "checkpoint"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    assert choose({}, cache="empty") == COMPILED_1
    assert choose({}, cache="empty", jit_compile=False) == PLAIN_2
    RunFolder(tmp_path / "run").execution.unlink()  # a run of an earlier version
    assert choose({}, cache="empty") == PLAIN_2


@pytest.mark.slow
@pytest.mark.parametrize("execution", [PLAIN_2, Execution(True, 2, "plain")])
def test_updates_are_measured_in_another_process(run, execution):
    shape = {"source": (3, 9), "target": (3, 7)}
    first, others = autotuning._cost(execution, Run.load(run), shape)
    assert 0 < others < first


def test_an_execution_that_cannot_be_measured_has_no_cost(tmp_path):
    assert autotuning._cost(PLAIN_1, Run.at(tmp_path, small_config()), {"source": (3, 9)}) is None
