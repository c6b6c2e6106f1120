"""Who trains: what makes its task, what it needs, and how it gets its two threads."""

import os
import shutil

from contenders import TENSORFLOW, TORCH, Contender, not_installed
from workload import THREADS

# XLA's CPU client, as JAX starts it, takes as many threads as NPROC says.
_JAX = {"NPROC": str(THREADS), "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": str(THREADS)}

_ROOM = str(2**34)
# glibc gives large blocks back to the system when they are freed, and zeroes each page of them
# anew when they are next asked for: at every update, for every large tensor.
MALLOC = {
    "stock": {},
    "tuned": {
        "MALLOC_MMAP_THRESHOLD_": _ROOM,
        "MALLOC_TRIM_THRESHOLD_": _ROOM,
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    },
}


def _contender(task: str, packages: str, environment: dict[str, str], **options) -> Contender:
    return Contender("", task, tuple(packages.split()), environment, {}, options)


_HUB = "tensorflow keras_hub"
CONTENDERS = {
    "ours": _contender("train_ours:task", "tensorflow", TENSORFLOW, jit_compile=False),
    "ours_xla": _contender("train_ours:task", "tensorflow", TENSORFLOW, jit_compile=True),
    "keras_mha": _contender("train_keras:task", "tensorflow", TENSORFLOW, jit_compile=False),
    "keras_mha_xla": _contender("train_keras:task", "tensorflow", TENSORFLOW, jit_compile=True),
    "keras_hub": _contender("train_keras_hub:task", _HUB, TENSORFLOW, jit_compile=False),
    "keras_hub_xla": _contender("train_keras_hub:task", _HUB, TENSORFLOW, jit_compile=True),
    "torch": _contender("train_torch:task", "torch", TORCH, compiled=False),
    "torch_compile": _contender("train_torch:task", "torch", TORCH, compiled=True),
    "marian": _contender("train_marian:task", "torch transformers", TORCH),
    "flax": _contender("train_flax:task", "jax flax optax", _JAX),
}
OURS = {"ours", "ours_xla"}


def missing(name: str) -> list[str]:
    """What a contender needs and this machine lacks."""
    lacks = not_installed(CONTENDERS[name].packages)
    if name == "torch_compile" and not _has_compiler():
        lacks.append("a C++ compiler")
    return lacks


def _has_compiler() -> bool:
    """Whether there is one where torch.compile looks for it."""
    return any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++")))
