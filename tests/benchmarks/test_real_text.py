"""benchmarks/translations/real_text: its table, and the costs of a command."""

import json
import subprocess
import sys

import pytest

from benchmarks.harness.usage import peak_megabytes, usage_of
from benchmarks.translations import real_text


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


def test_the_costs_of_a_command_count():
    before = peak_megabytes()
    size = 100 + int(before)
    program = [sys.executable, "-c", f"bytearray({size} * 2**20)[::4096].count(0)"]
    _, usage = usage_of(lambda: subprocess.run(program, check=True))
    assert usage.minor_faults > 0
    assert peak_megabytes() >= 100 + before
