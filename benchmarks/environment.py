"""What a result was measured with: the command, the machine and the versions of packages."""

import importlib.metadata
import os
import pathlib
import platform
import shlex
import sys


def command() -> str:
    """The command line of this process."""
    return shlex.join(["python", *sys.argv])


def machine() -> str:
    """Processor and number of logical cores."""
    lines = pathlib.Path("/proc/cpuinfo")
    names = [
        line.split(":", 1)[1].strip()
        for line in (lines.read_text("utf-8").splitlines() if lines.exists() else [])
        if line.startswith("model name")
    ]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} logical cores"


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
