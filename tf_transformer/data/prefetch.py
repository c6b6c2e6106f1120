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
    """Like `map(function, items)`, but threads compute the next results ahead.

    Args:
        function: may run in several threads at a time.
        items: the arguments of the calls.
        ahead: number of results that are computed ahead.

    Yields:
        the results, in the order of the items.

    Example:
        >>> list(prefetch(abs, [-1, 2, -3]))
        [1, 2, 3]
    """
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
