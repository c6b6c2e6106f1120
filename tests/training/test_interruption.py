"""Runs that are killed or stopped at any moment end as uninterrupted runs."""

import json
import os
import random
import signal
import sys
import time

import pytest
from training import processes

from tf_transformer.training.interruption import SIGNALS, StopRequest

STEPS = 16
OPTIONS = {"train.steps": STEPS, "train.validate_every": 5, "train.save_every": 1}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "whole"
    processes.finish(processes.start(run, **OPTIONS))
    return run


def survive(run, kills: int, seed: int) -> int:
    """Kills a run at random moments and starts it again; returns the number of kills."""
    rng = random.Random(seed)
    killed = 0
    while killed < kills and processes.saved_updates(run) < STEPS:
        process = processes.start(run, **OPTIONS)
        before = processes.saved_updates(run)
        while process.poll() is None and processes.saved_updates(run) == before:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.5))
        killed += process.poll() is None
        processes.kill(process)
    processes.finish(processes.start(run, **OPTIONS))
    return killed


def logged_steps(run):
    return [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_killed_run_ends_bit_for_bit_as_an_uninterrupted_one(uninterrupted, tmp_path):
    assert survive(tmp_path / "run", kills=2, seed=1)
    processes.assert_same_state(tmp_path / "run", uninterrupted)
    assert logged_steps(tmp_path / "run") == [5, 10, 15, 16]


@pytest.mark.slow
def test_twenty_kills(uninterrupted, tmp_path):
    killed, seed = 0, 0
    while killed < 20:
        seed += 1
        run = tmp_path / f"run{seed}"
        killed += survive(run, kills=20 - killed, seed=seed)
        processes.assert_same_state(run, uninterrupted)
        assert logged_steps(run) == [5, 10, 15, 16]
    print(f"{killed} kills in {seed} runs")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_saves_and_stops(tmp_path, number):
    run = tmp_path / "run"
    options = {"train.steps": 1000, "train.save_every": 1000, "train.validate_every": 4}
    options["train.valid_score_examples"] = 0  # a search takes longest
    process = processes.start(run, **options)
    while not processes.saved_updates(run):  # 4, after the first interval
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = processes.finish(process, status=128 + number)
    reached = processes.saved_updates(run)
    message = f"stopped by {number.name} after {reached} updates; to resume: the same command"
    assert message in errors
    assert "Traceback" not in errors
    assert 4 <= reached < 1000


def test_a_second_signal_has_its_usual_effect():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.signal == signal.SIGINT
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_signal_handlers_are_restored():
    before = [signal.getsignal(number) for number in SIGNALS]
    with StopRequest():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_closed_terminal_stops_and_a_process_under_nohup_goes_on(monkeypatch):
    """What is written to the closed terminal then is no error."""
    controller, terminal = os.openpty()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with StopRequest() as stop, open(terminal, "w") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            os.close(controller)
            signal.raise_signal(signal.SIGHUP)
            assert stop.signal == signal.SIGHUP
            print("stopped", file=sys.stderr, flush=True)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.signal == 0
    finally:
        signal.signal(signal.SIGHUP, before)
