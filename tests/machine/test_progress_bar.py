"""Progress in a file by the clock, and on a terminal of few columns."""

import os
import sys
import termios

import pytest

from tf_transformer.machine.progress_bar import ProgressBar

FACTS = ["loss 0.500", "17,571 tokens/s"]


class Clock:
    """Its time is set by hand."""

    time = 0.0

    def __call__(self):
        return self.time


class Terminal:
    """The other side of a pseudo-terminal."""

    def __init__(self, monkeypatch, columns):
        self._reading, self._writing = os.openpty()
        monkeypatch.setattr(sys, "stderr", os.fdopen(self._writing, "w", encoding="utf-8"))
        self.resize(columns)

    def resize(self, columns):
        termios.tcsetwinsize(self._writing, (24, columns))

    def states(self):
        """All states of the line, with the blanks that erase longer ones before."""
        sys.stderr.flush()
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(self._reading, 1 << 16)
        (line,) = text.decode().removesuffix("\n").split("\n")
        return [state for state in line.split("\r") if state]


def test_a_file_gets_a_first_and_a_last_line_and_one_per_minute(capsys):
    clock = Clock()
    with ProgressBar("updates", 200, clock=clock) as bar:
        for clock.time in range(1, 131):  # one update per second
            bar.advance(1, FACTS)
    assert capsys.readouterr().err == (
        "0%, 1/200, 03:19 left, loss 0.500, 17,571 tokens/s, 1.00 updates/s, 00:01 elapsed\n"
        "30%, 61/200, 02:19 left, loss 0.500, 17,571 tokens/s, 1.00 updates/s, 01:01 elapsed\n"
        "60%, 121/200, 01:19 left, loss 0.500, 17,571 tokens/s, 1.00 updates/s, 02:01 elapsed\n"
        "65%, 130/200, 01:10 left, loss 0.500, 17,571 tokens/s, 1.00 updates/s, 02:10 elapsed\n"
    )


def test_time_left_counts_from_the_start_of_this_program(capsys):
    clock = Clock()
    with ProgressBar("updates", 200, done=100, clock=clock) as bar:
        clock.time = 10
        bar.advance(20)
    assert capsys.readouterr().err == "60%, 120/200, 00:40 left, 2.00 updates/s, 00:10 elapsed\n"


def test_an_unknown_total_has_no_percent_and_no_time_left(capsys):
    clock = Clock()
    with ProgressBar("sentences", None, clock=clock) as bar:
        clock.time = 4
        bar.advance(2, ["9 tokens/s"])
    assert capsys.readouterr().err == "2, 9 tokens/s, 0.50 sentences/s, 00:04 elapsed\n"


@pytest.mark.parametrize("shown", [False, True])
def test_no_work_has_no_line(capsys, shown):
    with ProgressBar("updates", 4, done=0 if shown else 2, shown=shown) as bar:
        bar.advance(0 if shown else 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("columns", "last"),
    [
        (8, "75%"),
        (30, "75%, 3/4, 00:01 left"),
        (36, "75%, 3/4, 00:01 left, loss 0.500"),
        (60, " 75%|██████  | 3/4, 00:01 left, loss 0.500, 17,571 tokens/s"),
    ],
)
def test_a_line_fits_the_terminal_without_the_less_important_fields(monkeypatch, columns, last):
    terminal, clock = Terminal(monkeypatch, columns), Clock()
    with ProgressBar("updates", 4, clock=clock) as bar:
        clock.time = 3.0
        bar.advance(3, FACTS)
    states = terminal.states()
    assert max(map(len, states)) < columns
    assert states[-1].rstrip() == last


def test_a_line_of_unknown_total_fits_the_terminal(monkeypatch):
    terminal = Terminal(monkeypatch, 30)
    with ProgressBar("sentences", None) as bar:
        bar.advance(123_456, FACTS)
    states = terminal.states()
    assert max(map(len, states)) < 30
    assert states[-1].rstrip() == "123456, loss 0.500"


def test_the_line_follows_the_size_of_the_terminal(monkeypatch):
    terminal = Terminal(monkeypatch, 100)
    with ProgressBar("updates", 4) as bar:
        bar.advance(3, FACTS)
        terminal.resize(20)
    states = terminal.states()
    assert len(states[0]) == 99
    assert len(states[-1].rstrip()) < 20
