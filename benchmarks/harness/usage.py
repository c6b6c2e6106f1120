"""Time, page faults and memory of a process."""

import pathlib
import resource
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Usage(NamedTuple):
    """The cost of one run.

    Attributes:
        seconds: wall clock.
        minor_faults: pages that the kernel mapped without reading a disk. Memory that is freed and
            allocated again causes them.
        system_seconds: time of all threads in the kernel.
    """

    seconds: float
    minor_faults: int
    system_seconds: float


def usage_of(run: Callable[[], Result]) -> tuple[Result, Usage]:
    """The result of a call and its cost."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    result = run()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    faults = after.ru_minflt - before.ru_minflt
    return result, Usage(seconds, faults, after.ru_stime - before.ru_stime)


def peak_megabytes() -> float:
    """The most memory that this process has had, mapped files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def resident_megabytes() -> float:
    """The memory that this process has now, as Linux counts it."""
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (line for line in status.split("\n") if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 2**10
