"""Stops between two updates on SIGINT or SIGTERM."""

import signal
import threading
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptionError(Exception):
    """A training was stopped by a signal, after a checkpoint.

    Attributes:
        updates: number of updates made.
        signal: number of the signal.
    """

    def __init__(self, updates: int, signal_number: int):
        super().__init__(f"stopped by {signal.Signals(signal_number).name} after {updates} updates")
        self.updates = updates
        self.signal = signal_number


class StopRequest:
    """Within `with`, catches the first SIGINT or SIGTERM; a second one has its usual effect.

    Outside the main thread Python allows no signal handlers, and nothing is caught.

    Attributes:
        signal: number of the signal that was caught, or 0.
    """

    def __init__(self):
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._catch) for number in SIGNALS}
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()
