"""Freed memory stays with the process, so that the next tensor does not fault it in again."""

import contextlib
import ctypes
import os
import pathlib

# Options of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_LARGEST_INT = 2**31 - 1


def total_memory() -> int:
    """Bytes of memory that this process may use: those of the machine, or of its container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        total = min(total, int(pathlib.Path("/sys/fs/cgroup/memory.max").read_text()))
    return total


def keep_freed_memory(one_heap: bool = False) -> bool:
    """Makes glibc keep memory that is freed, for the next allocation of this process.

    By default glibc returns large tensors, such as logits, to the kernel when they are freed. The
    next tensor of that size faults every page in again, which can take longer than computing it,
    above all on virtual machines. research/docs/speed.md has measurements.

    Call it before TensorFlow starts threads. Options of malloc in the environment remain, and
    other C libraries are left as they are. A preloaded allocator like tcmalloc ignores it.

    Args:
        one_heap: whether all threads share a heap, as training needs it: other heaps than the first
            hold tensors of at most 64 MiB. But batches that are decoded at the same time then wait
            for each other.

    Returns:
        whether the allocator took the options.

    Example:
        >>> keep_freed_memory() in (True, False)
        True
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    options = {_MMAP_MAX: 0, _TRIM_THRESHOLD: _LARGEST_INT} | ({_ARENA_MAX: 1} if one_heap else {})
    return all(mallopt(option, value) for option, value in options.items())
