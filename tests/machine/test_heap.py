"""Freed memory is used again without page faults."""

import os
import platform
import subprocess
import sys

import pytest

# The page faults of ten large tensors, one after the other, from two threads.
ALLOCATIONS = """
import ctypes, resource, threading
from tf_transformer.machine.heap import keep_freed_memory

keep_freed_memory({one_heap}) if {kept} else None
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def allocate():
    for _ in range(5):
        tensor = libc.malloc({size})
        libc.memset(tensor, 1, {size})
        libc.free(tensor)

before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(2):
    thread = threading.Thread(target=allocate)
    thread.start()
    thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="options of glibc")
@pytest.mark.parametrize(("size", "one_heap"), [(80 * 2**20, True), (48 * 2**20, False)])
def test_freed_memory_is_not_faulted_in_again(size, one_heap):
    def faults(kept: bool, **environment: str) -> int:
        text = ALLOCATIONS.format(kept=kept, size=size, one_heap=one_heap)
        program = [sys.executable, "-c", text]
        names = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
        done = subprocess.run(program, env=names | environment, capture_output=True, check=True)
        return int(done.stdout)

    # Each of the two threads may use a heap of its own, and fault its pages in once. By default,
    # glibc returns every tensor of more than 32 MiB to the kernel: ten tensors are faulted in.
    few = 3 * size // os.sysconf("SC_PAGE_SIZE")
    assert faults(kept=True) < few < faults(kept=False)
    assert faults(kept=True, MALLOC_ARENA_MAX="2") > few  # the user's own options remain
