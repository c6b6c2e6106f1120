"""Threads that compute results ahead of their use."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = 2
AHEAD = 16  # number of results

T = TypeVar("T")
R = TypeVar("R")


def prefetch(function: Callable[[T], R], items: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
    """Like `map(function, items)`, but threads compute the next `ahead` results."""
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
