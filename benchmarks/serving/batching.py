"""A queue that forms batches from the requests of many clients, like TensorFlow Serving."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class BatchingOptions:
    """TF Serving's batching parameters, with TF Serving's names.

    Attributes:
        max_batch_size: most rows in a batch.
        batch_timeout_micros: longest wait of a batch for further rows, in microseconds.
        num_batch_threads: number of batches that run in parallel.
        max_enqueued_batches: most full batches in the queue; further rows are refused.
        allowed_batch_sizes: sizes in rising order; each batch is padded to one of them with copies
            of its first row. Empty: no padding.
    """

    max_batch_size: int = 32
    batch_timeout_micros: int = 5_000
    num_batch_threads: int = 2
    max_enqueued_batches: int = 100
    allowed_batch_sizes: tuple[int, ...] = (1, 4, 16, 32)

    def padded(self, rows: int) -> int:
        """The allowed size for a batch of `rows` rows."""
        return min((size for size in self.allowed_batch_sizes if size >= rows), default=rows)


class Batcher(Generic[T, R]):
    """Calls a function on batches of requests, which arrive singly from any thread.

    Args:
        work: function from a list of rows to a result for each row.
        options: the batching parameters.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], options: BatchingOptions):
        self._work = work
        self._options = options
        capacity = options.max_batch_size * options.max_enqueued_batches
        self._queue: queue.Queue[tuple[T, Future[R]] | None] = queue.Queue(capacity)
        self._forming = threading.Lock()  # one thread at a time takes requests from the queue
        self._threads = [
            threading.Thread(target=self._serve, daemon=True)
            for _ in range(options.num_batch_threads)
        ]

    def __enter__(self) -> "Batcher[T, R]":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def submit(self, row: T) -> Future[R]:
        """Adds a request to the queue.

        Raises:
            queue.Full: when the queue is full.
        """
        future: Future[R] = Future()
        self._queue.put_nowait((row, future))
        return future

    def _serve(self) -> None:
        while batch := self._next_batch():
            rows = [row for row, _ in batch]
            rows += rows[:1] * (self._options.padded(len(rows)) - len(rows))
            try:
                results = self._work(rows)
            except Exception as error:  # whatever it is, each client receives it
                for _, future in batch:
                    future.set_exception(error)
            else:
                for (_, future), result in zip(batch, results, strict=False):
                    future.set_result(result)

    def _next_batch(self) -> list[tuple[T, Future[R]]]:
        """The requests of a batch; an empty list at the end."""
        with self._forming:
            if (first := self._queue.get()) is None:
                return []
            batch = [first]
            end = time.monotonic() + self._options.batch_timeout_micros / 1e6
            while len(batch) < self._options.max_batch_size:
                try:
                    another = self._queue.get(timeout=max(0.0, end - time.monotonic()))
                except queue.Empty:
                    break
                if another is None:  # the end, for the other threads
                    self._queue.put(None)
                    break
                batch.append(another)
            return batch
