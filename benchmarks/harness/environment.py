"""The circumstances of a result: command, machine, date, and versions of packages."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import shlex
import sys
from typing import Any

# The widest first.
_INSTRUCTION_SETS = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"))


def circumstances(*packages: str) -> dict[str, Any]:
    """All circumstances, by their names in a result file.

    Args:
        *packages: names of distributions; missing distributions are left out.
    """
    return {
        "command": command(),
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
        "versions": versions(*packages),
    }


def command() -> str:
    """The command line of this process, for a reader who repeats it."""
    # With python -m, Python puts the path of the module first.
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec else ""
    program = ["-m", name] if name else [sys.argv[0]]
    return shlex.join(["python", *program, *sys.argv[1:]])


def machine() -> dict[str, Any]:
    """Processor, cores, instruction set and memory."""
    return {
        "processor": _cpu_info("model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_set": instruction_set(),
        "memory": f"{round(_memory_bytes() / 2**30)} GiB",
    }


def instruction_set() -> str:
    """The widest vectors of this processor; with a limit that the user set for oneDNN."""
    flags = _cpu_info("flags").split()
    widest = next((name for flag, name in _INSTRUCTION_SETS if flag in flags), platform.machine())
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    return f"{widest}, ONEDNN_MAX_CPU_ISA={limit}" if limit else widest


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _cpu_info(name: str) -> str:
    """A field of the first processor in /proc/cpuinfo; empty without this file or field."""
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    values = (line.split(":", 1)[1] for line in lines if line.startswith(name))
    return next(values, "").strip()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
