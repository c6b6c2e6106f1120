"""The lines of standard input, read as they arrive."""

import collections
import math
import os
import select
import time
from collections.abc import Iterator

from tf_transformer.errors import InputError
from tf_transformer.files.text_lines import STDIN, TextError, groups, plain

CHUNK = 2**16  # bytes
# If a signal comes just before a blocking call, Python handles it after the call. So no call blocks
# longer than this.
LONGEST_WAIT = 1.0  # seconds


class ArrivingLines:
    r"""Iterates over the lines of a text, as bytes without their newlines. Only "\n" ends a line.

    A buffered file blocks until a line is complete. This class can also report after some time that
    no line has arrived. Nothing else may read the file. The text may be compressed; see
    `text_lines.plain`.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lines: collections.deque[bytes] = collections.deque()
        chunks = iter(lambda: os.read(descriptor, CHUNK), b"")
        self._groups = groups(plain(chunks, STDIN))  # one for each chunk
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self.next_arrives_within(math.inf)
        if not self._lines:
            raise StopIteration
        return self._lines.popleft()

    def next_arrives_within(self, seconds: float) -> bool:
        """Whether the next line or the end of the file arrives within `seconds`."""
        end = time.monotonic() + seconds
        while not self._lines and not self._ended:
            left = max(0.0, end - time.monotonic())
            if select.select([self._descriptor], [], [], min(left, LONGEST_WAIT))[0]:
                self._read()
            elif not left:
                return False
        return True

    def _read(self) -> None:
        """Reads the bytes that have arrived. The file must be ready."""
        try:
            lines = next(self._groups, None)
        except TextError as error:
            raise InputError(str(error)) from error
        except OSError as error:
            raise InputError(f"{STDIN} cannot be read: {error.strerror}.") from error
        self._ended = lines is None
        self._lines.extend(lines or [])
