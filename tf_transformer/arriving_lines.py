"""The lines of a pipe or a terminal, read as they arrive."""

import collections
import os
import select
import time
from collections.abc import Iterator

CHUNK = 2**16  # bytes
# Python handles a signal that comes just before a blocking call only after it, so no call blocks
# for longer.
LONGEST_WAIT = 1.0  # seconds


class ArrivingLines:
    """Iterates over the lines of an open file without their newlines; only newlines end lines.

    A buffered file blocks until a line is complete. This one can also report, after a limited
    time, that no line has arrived.

    Args:
        descriptor: of the open file, which nothing else reads.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lines: collections.deque[bytes] = collections.deque()
        self._unfinished = bytearray()
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self.next_arrives_within(None)
        if not self._lines:
            raise StopIteration
        return self._lines.popleft()

    def next_arrives_within(self, seconds: float | None) -> bool:
        """Whether the next line, or the end of the file, arrives in this time; None: no limit."""
        start = time.monotonic()
        while not self._lines and not self._ended:
            left = LONGEST_WAIT
            if seconds is not None:
                left = min(left, max(0.0, start + seconds - time.monotonic()))
            if select.select([self._descriptor], [], [], left)[0]:
                self._read()
            elif seconds is not None and time.monotonic() >= start + seconds:
                return False
        return True

    def _read(self) -> None:
        """Takes what has arrived; the file is ready to be read."""
        chunk = os.read(self._descriptor, CHUNK)
        first, *others = chunk.split(b"\n")
        self._unfinished += first
        for part in others:
            self._lines.append(bytes(self._unfinished))
            self._unfinished = bytearray(part)
        self._ended = not chunk
        if self._ended and self._unfinished:
            self._lines.append(bytes(self._unfinished))
