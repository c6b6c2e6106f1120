"""benchmarks/translations/start: the time and memory of a process."""

import subprocess
import sys

import pytest

from benchmarks.harness.results import ROOT
from benchmarks.translations.start import seconds_and_megabytes

PROGRAM = """
import sys
from benchmarks.translations.start import seconds_and_megabytes
read = "import sys; data = b'x' * len(sys.stdin.read()) * 2**20"
for length in (1, 200):
    print(*seconds_and_megabytes([sys.executable, "-c", read], ["x" * length]))
"""


def test_a_process_has_its_own_peak():
    """In a new process, because a child counts the memory of a larger parent as its own."""
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    small, large = (list(map(float, line.split())) for line in done.stdout.splitlines())
    assert small[0] > 0
    assert 150 < large[1] - small[1] < 250


def test_a_failed_process_is_an_error():
    with pytest.raises(RuntimeError, match=r"exit.* ended with 3"):
        seconds_and_megabytes([sys.executable, "-c", "import sys; sys.exit(3)"], [])
