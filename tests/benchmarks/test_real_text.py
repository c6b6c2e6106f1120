"""benchmarks/translations/real_text: its table, and the costs of a command."""

import json
import pathlib
import subprocess
import sys

from benchmarks.harness.processes import ProcessError
from benchmarks.translations import real_text

ROOT = pathlib.Path(__file__).parents[2]


def test_systems_take_turns_and_have_the_medians_of_their_passes(tmp_path, monkeypatch):
    lines = ["a b c d e", "f g h i j"]
    (tmp_path / "text").write_text("\n".join(lines))
    speeds, turns = iter([5.0, 30.0, 1.0, 20.0, 4.0, 10.0]), []

    class Process:
        __enter__, __exit__ = lambda self: self, lambda self, *error: None

        def call(self, place, system, **work):
            if system == "marian":
                raise ProcessError("out of memory")
            if place.endswith("first_pass"):
                texts = lines if system == "translator" else ["x x x x x"] * 2
                return {"first_pass_seconds": 2.0, "translations": texts}
            turns.append(system)
            return {"sentences": 6, "sentences_per_second": next(speeds)}

    monkeypatch.setattr(real_text, "Process", Process)
    monkeypatch.setattr(real_text, "call", lambda place, **work: None)
    text, output = str(tmp_path / "text"), tmp_path / "found.json"
    real_text.main(
        *("runs/x", text, text, "translator,marian,ctranslate2"), rounds=3, output=str(output)
    )
    assert turns == ["translator", "ctranslate2"] * 3
    ours, theirs = json.loads(output.read_text())["measurements"]
    assert (ours["sentences_per_second"], theirs["sentences_per_second"]) == (4.0, 20.0)
    assert (ours["ratio_to_ctranslate2"], theirs["ratio_to_ctranslate2"]) == (0.2, 1.0)
    assert (ours["bleu"], theirs["bleu"]) == (100, 0)


def test_a_student_is_exported_and_measured_if_it_is_given(tmp_path, monkeypatch):
    calls, numbers = [], {"sentences": 1, "sentences_per_second": 2.0}

    class Process:
        __enter__, __exit__ = lambda self: self, lambda self, *error: None

        def call(self, place, system, **work):
            first = {"first_pass_seconds": 2.0, "translations": ["a"]}
            return first if place.endswith("first_pass") else numbers

    monkeypatch.setattr(real_text, "Process", Process)
    monkeypatch.setattr(real_text, "call", lambda place, **work: calls.append((place, work)))
    text, output = tmp_path / "text", tmp_path / "found.json"
    text.write_text("a\n")
    systems = "ctranslate2_int8,student,student_xla"
    for student, measured in (("", systems[:16]), ("runs/small", systems)):
        calls.clear()
        real_text.main("runs/x", *[str(text)] * 2, systems, student=student, output=str(output))
        found = json.loads(output.read_text())
        assert [row["system"] for row in found["measurements"]] == measured.split(",")
        assert [
            (work["system"], pathlib.Path(work["run_dir"]).name, work.get("beam_size"))
            for _, work in calls
        ] == [
            ("ctranslate2_int8", "x", 4),
            *((name, "small", None) for name in real_text.STUDENT if student),
        ]


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
