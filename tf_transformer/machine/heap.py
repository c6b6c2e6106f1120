"""Keeps freed memory in the process, so that the next tensor does not fault it in again."""

import ctypes
import os

# Options of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_LARGEST_INT = 2**31 - 1


def keep_freed_memory(one_heap: bool = False) -> bool:
    """Makes glibc keep freed memory for the next allocation; returns whether glibc accepted it.

    By default, glibc returns the memory of large freed tensors, such as logits, to the kernel. The
    next large tensor faults every page in again, which can take longer than computing the tensor.
    research/docs/speed.md has measurements. Call it before TensorFlow starts threads. It changes
    nothing if the environment has options of malloc, or if the allocator is another one.

    Args:
        one_heap: whether all threads share one heap. Training needs this, because only the first
            heap holds tensors of more than 64 MiB. Batches that are decoded at the same time then
            wait for each other.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    options = {_MMAP_MAX: 0, _TRIM_THRESHOLD: _LARGEST_INT} | ({_ARENA_MAX: 1} if one_heap else {})
    return all(mallopt(option, value) for option, value in options.items())
