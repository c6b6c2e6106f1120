"""The progress of long work: a line that fits the terminal, or a line each minute in a file."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from tqdm import tqdm

LOG_EVERY = 60.0  # seconds between two lines in a file
SHORTEST_BAR = 10  # columns


@dataclass(eq=False)
class ProgressBar:
    """Shows percent, position, time left, facts and speed on stderr.

    A terminal shows one line, which is updated in place. The least important parts are left out if
    the line is too long. A file gets the first line, the last line, and at most one line each
    minute between them.
    """

    unit: str  # name of a unit of the work, in the plural
    total: int | None  # number of all units; None: unknown
    done: int = 0  # number of finished units
    shown: bool = True  # whether anything is shown
    clock: Callable[[], float] = time.monotonic  # in seconds

    def __post_init__(self) -> None:
        self._first, self._start = self.done, self.clock()
        self._facts: Sequence[str] = ()
        is_hidden = not (self.shown and sys.stderr.isatty())
        self._line = _TerminalLine(self, is_hidden)
        self._in_file = self.shown and is_hidden
        self._logged: tuple[int, float] | None = None  # position and time of the newest line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes the last state to the terminal or the file."""
        self._line.close()
        if self._in_file and self.done != (self._logged[0] if self._logged else self._first):
            self._log()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self._start

    def advance(self, units: int, facts: Sequence[str] | None = None) -> None:
        """Adds finished units, and new facts, most important first; None: the old facts stay."""
        self.done += units
        self._facts = self._facts if facts is None else facts
        self._line.update(units)
        is_due = self._logged is None or self.clock() - self._logged[1] >= LOG_EVERY
        if self._in_file and units and is_due:
            self._log()

    def fields(self) -> list[str]:
        """Makes the parts of the line, most important first."""
        speed = (self.done - self._first) / max(self.elapsed, 1e-3)
        fields = [str(self.done)]
        if self.total:
            fields = [f"{100 * self.done // self.total}%", f"{self.done}/{self.total}"]
        if self.total and speed:
            fields.append(f"{tqdm.format_interval((self.total - self.done) / speed)} left")
        fields += [*self._facts, f"{speed:,.2f} {self.unit}/s"]
        return [*fields, f"{tqdm.format_interval(self.elapsed)} elapsed"]

    def _log(self) -> None:
        self._logged = self.done, self.clock()
        sys.stderr.write(", ".join(self.fields()) + "\n")
        sys.stderr.flush()


class _TerminalLine(tqdm):
    """A line of tqdm with as many fields as fit. Other printed lines do not break it."""

    def __init__(self, bar: ProgressBar, disable: bool):
        self._fields = bar.fields
        super().__init__(
            total=bar.total, initial=bar.done, mininterval=0.5, miniters=1, disable=disable
        )

    def __str__(self) -> str:
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80  # 0 means unknown
        except OSError:
            width = 80
        columns, fields = width - 1, self._fields()  # terminals wrap after the last column
        while len(text := ", ".join(fields)) > columns and len(fields) > 1:
            fields.pop()
        if not self.total or len(text) + SHORTEST_BAR > columns:
            return text[:columns]
        percent, *others = fields
        form = f"{percent:>4}|{{bar}}| {', '.join(others)}"
        return self.format_meter(
            self.n, self.total, 0, ncols=columns, ascii=self.ascii, bar_format=form
        )
