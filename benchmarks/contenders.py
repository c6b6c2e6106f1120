"""Who takes part: what builds it, what runs it, what it needs, and how it gets its two threads."""

import importlib.util
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from workload import THREADS


class Contender(NamedTuple):
    """A row of the table.

    Attributes:
        build: module:function that makes its files, once a run; empty: it has none.
        task: module:function that makes its `Task` for a cell.
        packages: modules it cannot do without.
        environment: variables of its processes.
        build_options: keyword arguments of `build`.
        task_options: keyword arguments of `task`.
    """

    build: str
    task: str
    packages: tuple[str, ...]
    environment: dict[str, str]
    build_options: dict[str, Any]
    task_options: dict[str, Any]


TENSORFLOW = {
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTRAOP_THREADS": str(THREADS),
    "TF_NUM_INTEROP_THREADS": os.environ.get("TF_NUM_INTEROP_THREADS", str(THREADS)),
}
# Unless told to spin, libgomp's threads go to sleep between parallel regions, and two of them are
# slower than one. Workers of one thread have no such regions, and must not have loading's threads
# spin beside them.
_TWO_THREADS = {"OMP_NUM_THREADS": str(THREADS), "GOMP_SPINCOUNT": "infinity"}
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
TORCH = {"OMP_NUM_THREADS": str(THREADS), "USE_TF": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}


def _saved_model(**options) -> Contender:
    packages = ("tensorflow", "tensorflow_text")
    return Contender("ours:build", "session:task", packages, TENSORFLOW, options, {})


def _ctranslate2(environment: dict[str, str], **options) -> Contender:
    place = "ctranslate2_model:build", "ctranslate2_model:task"
    return Contender(*place, ("ctranslate2",), environment, {}, options)


CONTENDERS = {
    "savedmodel": _saved_model(),
    "savedmodel_xla": _saved_model(jit_compile=True),
    "savedmodel_bfloat16": _saved_model(dtype="bfloat16"),
    "python": Contender(
        *("ours:build", "ours:task", ("tensorflow",), TENSORFLOW), {"export": False}, {}
    ),
    "ctranslate2": _ctranslate2(_TWO_THREADS, compute_type="float32"),
    "ctranslate2_int8": _ctranslate2(_TWO_THREADS, compute_type="int8"),
    "ctranslate2_2x1": _ctranslate2(_ONE_THREAD, compute_type="float32", workers=THREADS),
    "marian": Contender("", "marian:task", ("torch", "transformers"), TORCH, {}, {}),
}


def missing_packages(name: str) -> list[str]:
    """Packages that a contender needs and this environment lacks."""
    return not_installed(CONTENDERS[name].packages)


def not_installed(packages: Sequence[str]) -> list[str]:
    """Those of the packages that cannot be imported."""
    return [package for package in packages if importlib.util.find_spec(package) is None]
