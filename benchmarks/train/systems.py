"""The systems that train."""

import os
import shutil

from benchmarks.harness.systems import JAX, TENSORFLOW, TORCH, System, not_installed
from benchmarks.train.workload import Cell

__all__ = ["MALLOC", "OURS", "SYSTEMS", "TEXT_SYSTEMS", "Cell", "missing"]

_KEEP_ALL = str(2**34)
# By default glibc returns large blocks to the system when they are freed, and the system maps and
# clears their pages anew when they are allocated again: in every update, for every large tensor.
MALLOC = {
    "kept": {  # as train.py has it
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    },
    "huge_pages": {
        "MALLOC_MMAP_THRESHOLD_": _KEEP_ALL,
        "MALLOC_TRIM_THRESHOLD_": _KEEP_ALL,
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    },
}


def _system(module: str, packages: str, environment: dict[str, str], **options) -> System:
    place = f"benchmarks.train.{module}:task"
    return System(place, tuple(packages.split()), environment, options)


_HUB = "tensorflow keras_hub"
SYSTEMS = {
    "tf_transformer": _system("updater", "tensorflow", TENSORFLOW, jit_compile=False),
    "tf_transformer_xla": _system("updater", "tensorflow", TENSORFLOW, jit_compile=True),
    "keras": _system("keras_layers", "tensorflow", TENSORFLOW, jit_compile=False),
    "keras_xla": _system("keras_layers", "tensorflow", TENSORFLOW, jit_compile=True),
    "keras_hub": _system("keras_hub_layers", _HUB, TENSORFLOW, jit_compile=False),
    "keras_hub_xla": _system("keras_hub_layers", _HUB, TENSORFLOW, jit_compile=True),
    "torch": _system("torch_transformer", "torch", TORCH, compiled=False),
    "torch_compile": _system("torch_transformer", "torch", TORCH, compiled=True),
    "marian": _system("torch_marian", "torch transformers", TORCH),
    "flax": _system("flax_transformer", "jax flax optax", JAX),
}
TEXT_SYSTEMS = ("tf_transformer", "tf_transformer_xla", "keras", "keras_xla", "torch")
OURS = {"tf_transformer", "tf_transformer_xla"}


def missing(name: str) -> list[str]:
    """The requirements of a system that this machine lacks."""
    lacks = not_installed(SYSTEMS[name].packages)
    if name == "torch_compile" and not _has_compiler():
        lacks.append("a C++ compiler")
    return lacks


def _has_compiler() -> bool:
    """Whether torch.compile finds a C++ compiler."""
    return any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++")))
