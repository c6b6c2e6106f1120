"""Batches at a time: order, errors, and threads."""

import threading
import time

import pytest
import tensorflow as tf

from tf_transformer.machine.threads import in_parallel, parallel_batches


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_have_the_order_of_the_items(count):
    later = threading.Event()

    def run(item: int) -> int:
        if count > 1 and item == 0:
            assert later.wait(60)  # the first result is the last to come
        later.set() if item == 1 else None
        return -item

    assert list(in_parallel(run, range(9), count)) == [-i for i in range(9)]


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_comes_in_place_of_its_result_and_drops_the_rest(count):
    begun = []

    def run(item: int) -> int:
        begun.append(item)
        if item == 1:
            raise ValueError("item 1")
        time.sleep(0.01)
        return item

    results = in_parallel(run, range(1000), count)
    assert next(results) == 0
    with pytest.raises(ValueError, match="item 1"):
        next(results)
    assert len(begun) < 1000


def test_a_gpu_takes_one_batch_after_the_other(monkeypatch):
    assert parallel_batches(3) == 3
    monkeypatch.setattr(tf.config, "get_visible_devices", {"GPU": ["gpu"]}.get)
    assert parallel_batches(3) == 1
