"""Systems that a benchmark compares, with their packages and the settings for two threads."""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness.shapes import THREADS


class System(NamedTuple):
    """A row of a table.

    Attributes:
        task: module:function that makes its `Task` for a cell.
        packages: modules that it imports.
        environment: variables of its processes.
        task_options: keyword arguments of `task`.
        build: module:function that writes its files; empty: the system has no files.
        build_options: keyword arguments of `build`.
    """

    task: str
    packages: tuple[str, ...]
    environment: Mapping[str, str]
    task_options: Mapping[str, Any] = {}
    build: str = ""
    build_options: Mapping[str, Any] = {}


TENSORFLOW = {
    "KERAS_BACKEND": "tensorflow",
    "TF_NUM_INTRAOP_THREADS": str(THREADS),
    "TF_NUM_INTEROP_THREADS": os.environ.get("TF_NUM_INTEROP_THREADS", str(THREADS)),
}
TORCH = {"OMP_NUM_THREADS": str(THREADS), "USE_TF": "0"}
# XLA's CPU client, as JAX starts it, takes its number of threads from NPROC.
JAX = {"NPROC": str(THREADS), "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": str(THREADS)}


def not_installed(packages: Sequence[str]) -> list[str]:
    """The packages that cannot be imported here."""
    return [package for package in packages if importlib.util.find_spec(package) is None]
