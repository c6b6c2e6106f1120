"""Joins the calls of many requests into batches, which run in one thread."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple


class FullError(Exception):
    """The queue has no room for the items."""


class Call(NamedTuple):
    """A part of a batch: the items of a call, and the future of their results."""

    key: tuple[Callable[..., Sequence[Any]], tuple[Hashable, ...]]  # the function, its options
    items: Sequence[Any]
    results: "asyncio.Future[Sequence[Any]]"


class Batches:
    """A queue of calls. Calls of the same function with equal options run as one batch.

    While a batch runs, the queue collects calls for the next batch. A single call is not delayed,
    and batches grow with the load. Use the queue as an asynchronous context manager. A batch of
    several calls has at most `largest` items, and the queue at most `capacity`.

    Example:
        >>> async def lengths():
        ...     async with Batches() as batches:
        ...         def function(words):
        ...             return [len(word) for word in words]
        ...         return await asyncio.gather(
        ...             batches(function, ["one"]), batches(function, ["three", "four"])
        ...         )
        >>> asyncio.run(lengths())
        [[3], [5, 4]]
    """

    def __init__(self, largest: int = 128, capacity: int = 2048):
        self._largest = largest
        self.capacity = capacity
        self._queue: deque[Call] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "model")

    async def __aenter__(self) -> "Batches":
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._worker.cancel()
        for call in self._queue:
            call.results.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def queued(self) -> int:
        """The number of items in the queue, without those of the batch that runs."""
        return sum(len(call.items) for call in self._queue)

    async def __call__(
        self, function: Callable[..., Sequence[Any]], items: Sequence[Any], *options: Hashable
    ) -> Sequence[Any]:
        """The results of `function(items, *options)`, one for each item; or a `FullError`."""
        if self.queued + len(items) > self.capacity:
            raise FullError
        call = Call((function, options), items, asyncio.get_running_loop().create_future())
        self._queue.append(call)
        self._arrived.set()
        return await call.results

    async def _work(self) -> None:
        """Runs batches until it is cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while calls := self._next():
                await self._run(calls)

    def _next(self) -> list[Call]:
        """Takes the oldest call off the queue, with all calls that fit into its batch."""
        batch: list[Call] = []
        others: list[Call] = []
        size = 0
        for call in self._queue:
            if call.results.done():  # its request was cancelled
                continue
            size_with_it = size + len(call.items)
            if not batch or (call.key == batch[0].key and size_with_it <= self._largest):
                batch.append(call)
                size = size_with_it
            else:
                others.append(call)
        self._queue = deque(others)
        return batch

    async def _run(self, calls: list[Call]) -> None:
        """Computes the results of calls with one key."""
        function, options = calls[0].key
        items = [item for call in calls for item in call.items]
        loop = asyncio.get_running_loop()
        try:
            answers = iter(await loop.run_in_executor(self._thread, function, items, *options))
            for call in calls:
                results = list(itertools.islice(answers, len(call.items)))
                if not call.results.done():  # else its request was cancelled
                    call.results.set_result(results)
        except Exception as error:
            for call in calls:
                if not call.results.done():
                    call.results.set_exception(error)
        finally:
            for call in calls:
                call.results.cancel()  # has an effect only if the queue ends
