"""The part of the machine that this process may use: cores and memory, also of a container.

A container sets both limits by control groups. Python counts all cores of the machine.
"""

import contextlib
import math
import os
import pathlib
from collections.abc import Iterator

ROOT = pathlib.Path("/sys/fs/cgroup")
GROUPS = pathlib.Path("/proc/self/cgroup")
# The files of a group that hold its limit, in version 2 and in version 1. A limit of cores is the
# quotient of the time that the group may use in a period and the period, in microseconds.
_FILES = {
    "cpu": (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")),
    "memory": (("memory.max",), ("memory.limit_in_bytes",)),
}
# The variables from which TensorFlow, and libraries with OpenMP, take their numbers of threads.
_THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


def available_cores() -> int:
    """Number of cores that this process may use: the mask, or the quota, rounded up, if smaller."""
    return math.ceil(min([_cores_of_mask(), *_limits("cpu")]))


def total_memory() -> int:
    """Number of bytes that this process may use: the memory of the machine or its container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min([total, *_limits("memory")]))


def limit_threads() -> None:
    """Gives libraries that count the cores of the mask as many threads as the quota allows.

    More threads would use up the quota early in each period, and then all wait. Call it before
    TensorFlow is imported. Other processes inherit it.
    """
    if (cores := available_cores()) < _cores_of_mask():
        for name in _THREADS:
            os.environ.setdefault(name, str(cores))


def _cores_of_mask() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux, where a container may have a part of the cores
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limits(controller: str) -> Iterator[float]:
    """The limits of all groups that this process is in. The smallest of them counts."""
    for folder in _folders(controller):
        for names in _FILES[controller]:
            with contextlib.suppress(OSError, ValueError):  # no such file, or no limit: max
                numbers = " ".join((folder / name).read_text() for name in names).split()
                limit, period = map(int, (*numbers, "1")[:2])
                if limit > 0:  # -1: no limit
                    yield limit / period


def _folders(controller: str) -> Iterator[pathlib.Path]:
    """The folders of the groups that this process is in, each with all groups around it.

    A container may see the names that groups have outside of it. Such folders do not exist; the
    group of the container is then the root.
    """
    with contextlib.suppress(OSError, ValueError):  # not Linux, or another form
        for line in GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            group = pathlib.PurePosixPath(path.lstrip("/"))
            if not controllers:  # version 2, which has one tree for all controllers
                yield from (ROOT / folder for folder in (group, *group.parents))
            elif controller in controllers.split(","):
                yield from (ROOT / controller / folder for folder in (group, *group.parents))
