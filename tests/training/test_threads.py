"""CPU threads and micro-batches."""

import functools

import pytest
import tensorflow as tf

from tf_transformer.training import threads as threads_module
from tf_transformer.training.threads import use_threads


@pytest.fixture
def threads(monkeypatch):
    """TensorFlow's settings, {"inter_op": …, "intra_op": …}, and the devices of the machine."""
    settings, machine = {}, {"GPU": [], "CPU": ["cpu"]}
    monkeypatch.setattr(tf.config, "list_physical_devices", machine.get)
    for kind in ("inter_op", "intra_op"):
        setter = f"set_{kind}_parallelism_threads"
        record = functools.partial(settings.__setitem__, kind)
        monkeypatch.setattr(tf.config.threading, setter, record)
    monkeypatch.setattr(threads_module, "available_cores", lambda: 6)
    return settings, machine


@pytest.mark.parametrize(
    ("count", "jit_compile", "micro_batches", "per_operation"),
    [(0, False, 6, 1), (3, False, 3, 1), (1, False, 1, 1), (19, False, 8, 2), (0, True, 1, 6)],
)
def test_threads_are_divided_between_micro_batches_and_operations(
    threads, count, jit_compile, micro_batches, per_operation
):
    settings, _ = threads
    assert use_threads(count, jit_compile) == micro_batches
    assert settings == {"inter_op": count or 6, "intra_op": per_operation}


def test_threads_stay_as_they_are_where_there_is_a_gpu(threads):
    settings, machine = threads
    machine["GPU"] = ["gpu"]
    assert use_threads(2) == 1
    assert settings == {}


def test_threads_stay_as_they_are_once_tensorflow_has_computed():
    tf.zeros(1)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    assert use_threads(before + 1) == before + 1
    assert tf.config.threading.get_intra_op_parallelism_threads() == before
