"""Strategies by name, and what every replica gets of a batch."""

import functools
import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.training import strategy as devices
from tf_transformer.training.strategy import make_strategy, share_out, use_threads


def batches(count, rows=5):
    """Batches of unequal width, every number in them another."""
    numbers = itertools.count(1)
    for width in range(2, 2 + count):
        size = (rows, width)
        made = np.fromiter(itertools.islice(numbers, 2 * rows * width), np.int32)
        source, labels = made.reshape(2, *size)
        yield source, labels


def all_of(name, size=1, count=4):
    """Every element: the replicas' groups of batches."""
    strategy = make_strategy(name)
    with share_out(strategy, lambda: batches(count), size) as elements:
        return [strategy.experimental_local_results(element) for element in elements]


def test_one_device_gets_the_batches():
    for (group,), expected in zip(all_of("one"), batches(4), strict=True):
        for side, whole in zip(group[0], expected, strict=True):
            assert side.dtype == "int32"
            np.testing.assert_array_equal(side, whole)


@pytest.mark.parametrize("size", [1, 2])
def test_two_replicas_get_rows_in_turn_and_groups_stay_in_order(size):
    elements = all_of("mirrored", size)
    assert len(elements) == 4 // size
    found = [[group[i] for group in replicas] for replicas in elements for i in range(size)]
    for shares, expected in zip(found, batches(4), strict=True):
        for side in (0, 1):
            for replica, share in enumerate(shares):
                np.testing.assert_array_equal(share[side], expected[side][replica::2])


def test_where_rows_are_too_few_a_replica_gets_one_of_padding():
    (batch,) = batches(1, rows=5)
    shares = [devices._share(batch, replica, 7) for replica in range(7)]
    for side in (0, 1):
        for replica, share in enumerate(shares):
            expected = batch[side][replica : replica + 1] if replica < 5 else [[0, 0]]
            np.testing.assert_array_equal(share[side], expected)


def test_what_is_left_over_of_a_group_is_no_group():
    assert len(all_of("one", size=3, count=4)) == 1


@pytest.fixture
def threads(monkeypatch):
    """What TensorFlow is told of threads, and on which machine: {"inter_op": …, "intra_op": …}."""
    told, machine = {}, {"GPU": [], "CPU": ["cpu"]}
    monkeypatch.setattr(tf.config, "list_physical_devices", machine.get)
    for kind in ("inter_op", "intra_op"):
        setter = f"set_{kind}_parallelism_threads"
        tell = functools.partial(told.__setitem__, kind)
        monkeypatch.setattr(tf.config.threading, setter, tell)
    monkeypatch.setattr(devices, "_available_cores", lambda: 6)
    return told, machine


@pytest.mark.parametrize(
    ("count", "jit_compile", "shares", "in_an_operation"),
    [(0, False, 6, 1), (3, False, 3, 1), (1, False, 1, 1), (19, False, 8, 2), (0, True, 1, 6)],
)
def test_threads_are_shared_out_between_a_batch_and_operations(
    threads, count, jit_compile, shares, in_an_operation
):
    told, _ = threads
    assert use_threads(count, jit_compile) == shares
    assert told == {"inter_op": count or 6, "intra_op": in_an_operation}


def test_threads_stay_as_they_are_where_there_is_a_gpu(threads):
    told, machine = threads
    machine["GPU"] = ["gpu"]
    assert use_threads(2) == 1
    assert told == {}


def test_threads_stay_as_they_are_once_tensorflow_has_computed():
    tf.zeros(1)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    assert use_threads(before + 1) == before + 1
    assert tf.config.threading.get_intra_op_parallelism_threads() == before


def test_an_unknown_strategy_is_an_error():
    with pytest.raises(InputError, match="must be auto, one, mirrored or multi_worker, got 'many'"):
        make_strategy("many")


def test_several_workers_need_to_know_of_each_other(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(InputError, match="needs the environment variable TF_CONFIG"):
        make_strategy("multi_worker")


DIES_WHILE_TRAINING = """
import time
import numpy as np
import tensorflow as tf
from tf_transformer.training.strategy import share_out

def endless():
    while True:
        yield (np.ones((2, 3), np.int32),) * 2
        time.sleep(0.3)  # so that the process ends while the next batch is made

with share_out(tf.distribute.get_strategy(), endless) as batches:
    next(batches)
    raise RuntimeError("and the traceback keeps the iterator alive")
"""


def test_a_process_that_dies_while_training_exits():
    root = pathlib.Path(__file__).parents[2]
    died = subprocess.run(
        [sys.executable, "-c", DIES_WHILE_TRAINING],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        timeout=40,
        check=False,
    )
    assert died.returncode == 1
    assert b"keeps the iterator alive" in died.stderr
