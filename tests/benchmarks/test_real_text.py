"""benchmarks/translations/real_text: its table, and the costs of a command."""

import json
import pathlib
import subprocess
import sys

import pytest

from benchmarks.translations import real_text

ROOT = pathlib.Path(__file__).parents[2]


def test_each_system_has_the_median_of_its_rounds_and_the_bleu_of_its_translations(
    tmp_path, monkeypatch
):
    lines = ["a b c d e", "f g h i j"]
    (tmp_path / "text").write_text("\n".join(lines))
    speeds = iter([5.0, 30.0, 1.0, 20.0, 4.0, 10.0])

    def call(place, system="", **work):
        if place.endswith("measured"):
            right = system == "translator"
            texts = lines if right else ["x x x x x"] * 2
            return {"sentences": 6, "sentences_per_second": next(speeds), "translations": texts}

    monkeypatch.setattr(real_text, "call", call)
    text, output = str(tmp_path / "text"), tmp_path / "found.json"
    real_text.main("runs/x", text, text, systems="translator,savedmodel", output=str(output))
    found = {row.pop("system"): row for row in json.loads(output.read_text())["measurements"]}
    assert found["translator"]["sentences_per_second"] == 4.0
    assert found["savedmodel"]["sentences_per_second"] == 20.0
    assert [row["bleu"] for row in found.values()] == [pytest.approx(100), 0]


COSTS_OF_A_COMMAND = """
import subprocess, sys
from benchmarks.harness.usage import peak_megabytes, usage_of

command = [sys.executable, "-c", "import json; bytearray(200 * 2**20)[::4096].count(0)"]
_, usage = usage_of(lambda: subprocess.run(command, check=True))
print(peak_megabytes(), usage.minor_faults)
"""


def test_the_costs_of_a_command_count():
    """In a small process: this one may have had more memory than the command for other tests."""
    measure = [sys.executable, "-c", COSTS_OF_A_COMMAND]
    done = subprocess.run(measure, capture_output=True, check=True, cwd=ROOT)
    peak, faults = map(float, done.stdout.split())
    assert peak > 200
    assert faults > 1000  # its interpreter alone has more; the process that starts it, far fewer
