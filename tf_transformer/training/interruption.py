"""Stops a training run between two updates on SIGINT, SIGTERM or SIGHUP."""

import contextlib
import os
import signal
import stat
import sys
import threading
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptionError(Exception):
    """A signal stopped a training run, which saved a checkpoint first."""

    def __init__(self, updates: int, signal_number: int):
        super().__init__(f"stopped by {signal.Signals(signal_number).name} after {updates} updates")
        self.signal = signal_number


class StopRequest:
    """Catches the first of `SIGNALS` in a `with` block. A second signal has its usual effect.

    With nohup, SIGHUP is ignored. Outside the main thread, where Python allows no signal handlers,
    no signal is caught.
    """

    def __init__(self) -> None:
        self.signal = 0  # number of the caught signal
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            caught = set(SIGNALS)
            if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
                caught.remove(signal.SIGHUP)
            self._before = {number: signal.signal(number, self._catch) for number in caught}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()
        # A write to the closed terminal would be an error; it is discarded.
        for stream in (sys.stdout, sys.stderr) if number == signal.SIGHUP else ():
            with contextlib.suppress(OSError, ValueError):  # not an open file
                descriptor = stream.fileno()
                if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
