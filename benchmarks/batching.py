"""Batches of single requests from many clients, formed as TensorFlow Serving forms them."""

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
    """TF Serving's batching parameters, by its own names.

    Attributes:
        max_batch_size: most rows of a batch.
        batch_timeout_micros: how long the first row of a batch waits for others, microseconds.
        num_batch_threads: batches worked on at once.
        max_enqueued_batches: rows of so many full batches may wait; a further one is refused.
        allowed_batch_sizes: rising; a batch is filled up to one of them with copies of its first
            row. Empty: none is.
    """

    max_batch_size: int = 32
    batch_timeout_micros: int = 5_000
    num_batch_threads: int = 2
    max_enqueued_batches: int = 100
    allowed_batch_sizes: tuple[int, ...] = (1, 4, 16, 32)

    def filled_up(self, rows: int) -> int:
        """The allowed size for a batch of `rows` rows."""
        return min((size for size in self.allowed_batch_sizes if size >= rows), default=rows)


class Batcher(Generic[T, R]):
    """Calls a function of a batch for requests that come one by one, from any thread.

    Args:
        work: work(rows) -> a result for each row.
        options: how batches are formed.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], options: BatchingOptions):
        self._work = work
        self._options = options
        room = options.max_batch_size * options.max_enqueued_batches
        self._waiting: queue.Queue[tuple[T, Future[R]] | None] = queue.Queue(room)
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
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def submit(self, row: T) -> Future[R]:
        """Enqueues a request.

        Raises:
            queue.Full: when too many wait.
        """
        future: Future[R] = Future()
        self._waiting.put_nowait((row, future))
        return future

    def _serve(self) -> None:
        while batch := self._next_batch():
            rows = [row for row, _ in batch]
            rows += rows[:1] * (self._options.filled_up(len(rows)) - len(rows))
            try:
                results = self._work(rows)
            except Exception as error:  # whatever it is, each client is told
                for _, future in batch:
                    future.set_exception(error)
            else:
                for (_, future), result in zip(batch, results, strict=False):
                    future.set_result(result)

    def _next_batch(self) -> list[tuple[T, Future[R]]]:
        """The requests of a batch; none at the end."""
        with self._forming:
            if (first := self._waiting.get()) is None:
                return []
            batch = [first]
            end = time.monotonic() + self._options.batch_timeout_micros / 1e6
            while len(batch) < self._options.max_batch_size:
                try:
                    another = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
                except queue.Empty:
                    break
                if another is None:  # meant for the next who looks
                    self._waiting.put(None)
                    break
                batch.append(another)
            return batch
