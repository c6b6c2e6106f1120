"""Stopping between two updates when a signal asks for it."""

import signal
import threading
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptionError(Exception):
    """A training stopped on request, with all it had reached saved.

    Attributes:
        updates: how many were made.
        signal: the number of the signal that asked.
    """

    def __init__(self, updates: int, signal_number: int):
        super().__init__(f"stopped by {signal.Signals(signal_number).name} after {updates} updates")
        self.updates = updates
        self.signal = signal_number


class StopRequest:
    """Within `with`, notes SIGINT and SIGTERM; a second one acts as it would have without.

    Outside of the main thread, where Python allows no signal handlers, it notes nothing.

    Attributes:
        signal: the number of the signal that came, or 0.
    """

    def __init__(self):
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()
