"""Shards of batches: the rows of each replica."""

import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tf_transformer.training.strategy import make_strategy, replica_batches, rows_of_replica

NAMES = ("source", "target")


def batches(count, rows=5):
    """Batches of unequal width; no number occurs twice."""
    numbers = itertools.count(1)
    for width in range(2, 2 + count):
        size = (rows, width)
        made = np.fromiter(itertools.islice(numbers, 2 * rows * width), np.int32)
        yield dict(zip(NAMES, made.reshape(2, *size), strict=True))


def all_of(name, size=1, count=4):
    """All elements: the replicas' groups of batches."""
    strategy = make_strategy(name)
    with replica_batches(strategy, NAMES, lambda: batches(count), size) as elements:
        return [strategy.experimental_local_results(element) for element in elements]


def test_one_device_gets_the_batches():
    for (group,), expected in zip(all_of("one"), batches(4), strict=True):
        for name, whole in expected.items():
            assert group[0][name].dtype == "int32"
            np.testing.assert_array_equal(group[0][name], whole)


@pytest.mark.parametrize("size", [1, 2])
def test_two_replicas_get_rows_in_turn_and_groups_stay_in_order(size):
    elements = all_of("mirrored", size)
    assert len(elements) == 4 // size
    found = [[group[i] for group in replicas] for replicas in elements for i in range(size)]
    for shards, expected in zip(found, batches(4), strict=True):
        for name in NAMES:
            for replica, shard in enumerate(shards):
                np.testing.assert_array_equal(shard[name], expected[name][replica::2])


def test_batches_of_one_name():
    with replica_batches(
        make_strategy("one"), ["text"], lambda: iter([{"text": [[1, 2]]}])
    ) as data:
        ((batch,),) = data
    assert list(batch) == ["text"]
    np.testing.assert_array_equal(batch["text"], [[1, 2]])


def test_a_replica_without_rows_gets_a_row_of_padding():
    (batch,) = batches(1, rows=5)
    shards = [rows_of_replica(batch, replica, 7) for replica in range(7)]
    for name in NAMES:
        for replica, shard in enumerate(shards):
            expected = batch[name][replica : replica + 1] if replica < 5 else [[0, 0]]
            np.testing.assert_array_equal(shard[name], expected)


def test_an_incomplete_group_is_dropped():
    assert len(all_of("one", size=3, count=4)) == 1


DIES_WHILE_TRAINING = """
import time
import numpy as np
import tensorflow as tf
from tf_transformer.training.strategy import replica_batches

def endless():
    while True:
        yield {"text": np.ones((2, 3), np.int32)}
        time.sleep(0.3)  # so that the process ends while the next batch is made

with replica_batches(tf.distribute.get_strategy(), ["text"], endless) as batches:
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
