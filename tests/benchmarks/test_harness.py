"""Processes, turns, usage, options, speeds and result files that all benchmarks share."""

import itertools
import json
import math
import mmap
import time

import pytest

from benchmarks.harness import environment, processes, results, speed, tables, tasks
from benchmarks.harness.options import at_least_one, chosen, numbers
from benchmarks.harness.processes import Process, ProcessError
from benchmarks.harness.systems import System
from benchmarks.harness.turns import Job, in_turn, interleaved
from benchmarks.harness.usage import Usage, usage_of
from benchmarks.train.workload import Cell
from tf_transformer.errors import InputError


def test_a_process_calls_functions_with_its_own_environment(monkeypatch):
    monkeypatch.setenv("FIRST", "of the parent")
    with Process({"SECOND": "of the process"}) as process:
        assert process.call("json:loads", s="[1, 2]") == [1, 2]
        for name, value in (("FIRST", "of the parent"), ("SECOND", "of the process")):
            assert process.call("os:getenv", key=name) == value
        assert process.call("os:getenv", key="CUDA_VISIBLE_DEVICES") == "-1"
    assert processes.call("json:dumps", obj=[1]) == "[1]"


MODULE = """
import os, signal, threading

def noise():
    print("noise")
    return 1

def fail():
    raise ValueError("bad\\ninput")

def crash():
    os.write(2, b"a notice\\n")
    os.kill(os.getpid(), signal.SIGSEGV)

def die_soon():
    threading.Timer(0.1, os._exit, [9]).start()
"""


@pytest.fixture
def process(tmp_path):
    """A process with a module of small functions."""
    (tmp_path / "functions.py").write_text(MODULE, "utf-8")
    with Process({"PYTHONPATH": str(tmp_path)}) as started:
        yield started


def test_lines_that_libraries_print_are_no_results(process):
    assert process.call("functions:noise") == 1


def test_the_error_of_a_process_is_the_last_line_that_it_wrote(process):
    with pytest.raises(ProcessError, match=r"^input$"):
        process.call("functions:fail")


def test_a_process_that_ends_without_a_word_gives_its_exit_status(process):
    process.call("functions:die_soon")
    time.sleep(0.5)  # it has ended before the next call
    with pytest.raises(ProcessError, match=r"^exit status 9$"):
        process.call("functions:noise")


def test_a_process_that_a_signal_ends_gives_the_name_of_the_signal(process):
    """Not the last notice of a library."""
    with pytest.raises(ProcessError, match=r"^ended by SIGSEGV$"):
        process.call("functions:crash")


def jobs(*systems):
    return [Job("tiny", system) for system in systems]


def test_jobs_take_turns_and_one_that_fails_is_left_out(capsys):
    first, second, third = jobs("a", "b", "c")
    order = []

    def measure(job):
        order.append(job.system)
        yield len(order)
        if job == second:
            raise ProcessError("out of memory")

    found, failed = in_turn([first, second, third], [("1", measure), ("2", measure)], str)
    assert order == ["a", "b", "c", "a", "c"]
    assert found == [1, 2, 3, 4, 5]
    assert failed == {second: "out of memory"}
    assert "1: tiny b: failed: out of memory" in capsys.readouterr().err


def test_interleaved_jobs_give_one_result_in_turn_and_one_that_fails_is_left_out():
    first, second, third = jobs("a", "b", "c")
    order = []

    def work(job):
        for number in range({"a": 3, "b": 2, "c": 3}[job.system]):
            order.append(job.system)
            yield number
        if job == second:
            raise ProcessError("out of memory")

    found, failed = interleaved([first, second, third], work)
    assert order == ["a", "b", "c", "a", "b", "c", "a", "c"]
    assert found == {first: [0, 1, 2], third: [0, 1, 2]}
    assert failed == {second: "out of memory"}


def test_usage_counts_the_pages_that_a_run_touches():
    """8 MB of new memory are 2,048 pages of 4 KB, or 4 large pages."""
    content = b"x" * 2**23

    def touch() -> int:
        with mmap.mmap(-1, len(content)) as memory:
            return memory.write(content)

    result, usage = usage_of(touch)
    assert result == len(content)
    assert usage.seconds > 0
    assert usage.minor_faults >= 4
    assert usage.system_seconds >= 0


@pytest.fixture
def runs(monkeypatch):
    """A registry with one system, whose runs and checks are recorded."""
    made = []

    def task(setting, cell, factor):
        made.append((setting.shape, setting.own.as_posix(), cell))
        found = itertools.count()
        return tasks.Task(10, lambda: next(found), lambda value: factor * value, 2, 7)

    class Registry:
        pass

    Registry.SYSTEMS = {"mine": System("here:task", (), {}, {"factor": 2})}
    Registry.Cell = Cell
    monkeypatch.setattr(tasks.importlib, "import_module", lambda name: Registry)
    monkeypatch.setattr(tasks, "function_at", lambda place: task)
    tasks._task.cache_clear()
    yield made
    tasks._task.cache_clear()


def test_warm_up_is_not_timed_and_every_result_is_checked(runs):
    place = {"systems": "here", "system": "mine", "shape": "tiny", "folder": "/x"}
    found = tasks.measure(**place, cell=[1, 2], warm_up=2, repeats=3)
    assert found["values"] == [0, 2, 4, 6, 8]
    assert len(found["usages"]) == 3
    assert (found["tokens"], found["steps"], found["parameters"]) == (10, 2, 7)
    assert len(tasks.measure(**place, cell=[1, 2])["usages"]) == 1  # the same task goes on
    assert tasks.measure(**place, cell=[1, 2], repeats=0)["usages"] == []
    long = tasks.measure(**place, cell=[1, 3], min_seconds=0.001)
    assert sum(usage.seconds for usage in long["usages"]) >= 0.001
    shape = tasks.SHAPES["tiny"]
    assert runs == [(shape, "/x/tiny/mine", Cell(1, 2)), (shape, "/x/tiny/mine", Cell(1, 3))]


def measured(seconds, faults=0, steps=1):
    usages = [Usage(each, faults, 0.5) for each in seconds]
    place = speed.Place("tiny", "mine", Cell(1, 2))
    return speed.Measurement(place, 48, steps, 0, usages, [])


def test_a_speed_is_that_of_the_median_of_the_runs_of_all_rounds():
    """By hand: of 1, 2, 4, 8 and 9 seconds the median is 4; a run has 48 tokens and 2 updates."""
    rounds = [measured([9.0, 1.0, 8.0], 10, steps=2), measured([2.0, 4.0], 20, steps=2)]
    (found,) = speed.speeds_of(rounds).values()
    assert found.tokens_per_second == 12
    assert found.median_seconds == 2
    assert found.rounds == [48 / 8, 48 / 3]
    assert found.minor_faults == (3 * 10 + 2 * 20) / 5 / 2
    assert found.system_seconds == 0.25


def test_page_faults_and_system_time_stand_beside_the_time():
    found = speed.costs(speed.speeds_of([measured([0.004], faults=12_345)]), "tiny")
    assert found.split("\n") == [
        "| system | work | minor page faults | system time, ms | time, ms |",
        "| --- | --- | ---: | ---: | ---: |",
        "| `mine` | 1 × 2 tokens | 12,345 | 500.0 | 4.0 |",
    ]


def test_the_end_names_skipped_and_failed_systems_and_writes_the_result(tmp_path, capsys):
    output = tmp_path / "new" / "x.json"
    (job,) = jobs("mine")
    with pytest.raises(SystemExit) as caught:
        speed.finish([{"a": 1}], {"marian": ["torch"]}, {job: "why"}, ["numpy"], str(output))
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert "skipped: marian (needs torch)" in printed
    assert "failed: tiny mine (why)" in printed
    found = json.loads(output.read_text("utf-8"))
    assert found["measurements"] == [{"a": 1}]
    assert found["skipped"] == {"marian": ["torch"]}
    assert found["failed"] == {"tiny mine": "why"}
    assert set(found["versions"]) == {"python", "numpy"}
    speed.finish([], {}, {}, ["numpy"], "")


def test_the_limit_of_the_instruction_set_that_the_user_set_is_recorded(monkeypatch):
    fields = {"flags": "sse avx avx2 avx512f", "model name": "AMD EPYC"}
    monkeypatch.setattr(environment, "_cpu_info", fields.__getitem__)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    assert environment.instruction_set() == "AVX-512"
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert environment.instruction_set() == "AVX-512, ONEDNN_MAX_CPU_ISA=AVX2"
    fields["flags"] = "sse avx avx2"
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
    assert environment.instruction_set() == "AVX2"
    machine = environment.machine()
    assert machine["processor"] == "AMD EPYC"
    assert machine["cores"] >= 1
    assert machine["memory"].endswith(" GiB")


def test_a_result_read_back_is_what_was_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDERS", (tmp_path / "empty", tmp_path))
    results.save(str(tmp_path / "x.json"), [{"text": "für"}], ["numpy"], summary={"n": 1})
    found = results.read("x")
    assert found["measurements"] == [{"text": "für"}]
    assert found["summary"] == {"n": 1}
    assert results.result_names() == ["x"]


def test_rows_become_a_table():
    rows = [{"text": "a", "bleu": 38.1, "levels": [1000, 2]}, {"text": "b", "bleu": None}]
    assert tables.of_rows(rows, {"text": "name", "bleu": "BLEU", "levels": "MB"}, left=1) == (
        "| name | BLEU | MB |\n| --- | ---: | ---: |\n| a | 38.10 | 1,000 → 2 |\n| b | – | – |"
    )
    assert tables.of_rows([{"pairs": 1000}]) == "| pairs |\n| ---: |\n| 1,000 |"
    assert tables.formatted("scores_within", math.pi * 1e-5) == "3.1e-5"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: chosen("python,pyhton", ["python", "marian"]), "unknown name 'pyhton'"),
        (lambda: chosen("huge", ["base", "tiny"]), "expected some of base, tiny"),
        (lambda: numbers("1,x"), "expected positive numbers, like 1,32, got '1,x'"),
        (lambda: numbers("0"), "expected positive numbers, like 1,32, got '0'"),
        (lambda: at_least_one(rounds=1, repeats=0), "repeats must be at least 1, got 0"),
    ],
)
def test_bad_options_are_errors_of_the_user(call, text):
    with pytest.raises(InputError, match=text):
        call()
