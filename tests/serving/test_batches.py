"""The queue: which calls run together, who gets which result, and errors."""

import asyncio
import threading

from tf_transformer.serving.batches import Batches, FullError


class Recorder:
    """A function that records the batches it gets; each runs when it is let go."""

    def __init__(self):
        self.batches = []
        self.go = threading.Event()

    def __call__(self, items, *options):
        self.go.wait(10)
        self.batches.append((len(items), *options))
        if "bad" in items:
            raise ValueError("bad")
        return [(item, *options) for item in items]


async def calls(batches, function, rows):
    """The results of calls that arrive while the first one runs, with errors as results."""
    tasks = []
    for items, *options in rows:
        tasks.append(asyncio.create_task(batches(function, items, *options)))
        await asyncio.sleep(0.01 if len(tasks) == 1 else 0)
    function.go.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def run(rows, **limits):
    async def all_calls():
        async with Batches(**limits) as batches:
            return await calls(batches, function, rows)

    function = Recorder()
    return asyncio.run(all_calls()), function.batches


def test_calls_with_equal_options_run_together_and_get_their_own_results():
    rows = [([f"{n}.{item}" for item in range(n % 4)], n % 3) for n in range(1, 40)]
    found, batches = run(rows, largest=1000)
    assert found == [[(item, option) for item in items] for items, option in rows]
    assert len(batches) == 1 + 3  # the first alone, then one for each value of the option


def test_batches_are_not_larger_than_the_limit():
    _, batches = run([(["a"] * 3,)] * 20, largest=10)
    assert batches == [(3,), *[(9,)] * 6, (3,)]


def test_one_large_call_runs_whole():
    assert run([(["a"] * 50,)], largest=10)[1] == [(50,)]


def test_a_full_queue_refuses_calls_and_keeps_the_others():
    found, _ = run([(["first"],), *[(["a"] * 4,)] * 4], capacity=10)
    assert [type(each) for each in found] == [list, list, list, FullError, FullError]


def test_an_error_reaches_its_batch_only():
    found, _ = run([(["first"], 0), (["bad"], 1), (["good"], 2), (["joined"], 1)])
    assert found[0] == [("first", 0)]
    assert found[2] == [("good", 2)]
    assert [str(found[n]) for n in (1, 3)] == ["bad", "bad"]


def test_cancelled_calls_are_not_computed():
    async def cancel():
        async with Batches() as batches:
            tasks = [asyncio.create_task(batches(function, [n], n)) for n in range(3)]
            await asyncio.sleep(0.01)
            tasks[1].cancel()
            function.go.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

    function = Recorder()
    found = asyncio.run(cancel())
    assert function.batches == [(1, 0), (1, 2)]
    assert isinstance(found[1], asyncio.CancelledError)


def test_the_end_cancels_calls():
    async def end():
        async with Batches() as batches:
            tasks = [asyncio.create_task(batches(function, [n], n)) for n in range(2)]
            await asyncio.sleep(0.01)
        function.go.set()
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    function = Recorder()
    assert all(isinstance(each, asyncio.CancelledError) for each in asyncio.run(end()))
