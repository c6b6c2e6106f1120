"""Results computed ahead of their use, by threads."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = 2
AHEAD = 16  # results

T = TypeVar("T")
R = TypeVar("R")


def prefetch(function: Callable[[T], R], items: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
    """`map(function, items)`, with the next results computed ahead by threads; in order.

    Args:
        function: may run in several threads at a time.
        items: its arguments.
        ahead: results that are computed before the next is asked for.

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
