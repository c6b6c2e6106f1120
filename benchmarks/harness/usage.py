"""Time, page faults and memory of a process."""

import pathlib
import resource
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Usage(NamedTuple):
    """The cost of a run, with the cost of child processes that ended in it.

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
    before, start = _so_far(), time.perf_counter()
    result = run()
    seconds, after = time.perf_counter() - start, _so_far()
    faults = sum(usage.ru_minflt for usage in after) - sum(usage.ru_minflt for usage in before)
    system = sum(usage.ru_stime for usage in after) - sum(usage.ru_stime for usage in before)
    return result, Usage(seconds, faults, system)


def peak_megabytes() -> float:
    """The peak memory of this process or of an ended child, with mapped files, in MiB."""
    return max(usage.ru_maxrss for usage in _so_far()) / 2**10


def _so_far() -> list[resource.struct_rusage]:
    """What this process and its ended children have used."""
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def resident_megabytes() -> float:
    """The present resident memory of this process in MiB, as Linux counts it."""
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (line for line in status.split("\n") if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 2**10
