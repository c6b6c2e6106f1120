"""Lines of a pipe: whole, in order, and as they arrive."""

import os
import signal
import threading

import pytest

from tf_transformer.files.arriving_lines import CHUNK, ArrivingLines


@pytest.fixture
def pipe():
    """The lines of a pipe, and its other end as a file."""
    reading, writing = os.pipe()
    with open(writing, "wb", buffering=0) as file:
        yield ArrivingLines(reading), file
    os.close(reading)


def test_only_newlines_end_lines_and_the_last_line_needs_none(pipe):
    lines, file = pipe
    file.write("one\n\ntwo\u2028three\x85\r\n\x00\t\nlast".encode())
    file.close()
    assert list(lines) == [b"one", b"", "two\u2028three\x85\r".encode(), b"\x00\t", b"last"]


def test_a_file_that_ends_with_a_newline_has_no_line_after_it(pipe):
    lines, file = pipe
    file.write(b"one\n")
    file.close()
    assert list(lines) == [b"one"]


def test_a_line_may_be_longer_than_what_is_read_at_once(tmp_path):
    content = b"x" * (3 * CHUNK + 1) + b"\n" + b"y\n" * CHUNK
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        assert list(ArrivingLines(file.fileno())) == content.split(b"\n")[:-1]


def test_a_line_arrives_when_it_is_complete(pipe):
    lines, file = pipe
    assert not lines.next_arrives_within(0.01)
    file.write(b"half a ")
    assert not lines.next_arrives_within(0.01)
    file.write(b"line\n")
    assert lines.next_arrives_within(10)
    assert next(lines) == b"half a line"


def test_the_end_arrives_too(pipe):
    lines, file = pipe
    file.close()
    assert lines.next_arrives_within(10)
    assert list(lines) == []


class SignalError(Exception):
    """Raised by the handler of a signal."""


def raise_error(number, frame):
    raise SignalError


def test_a_signal_that_does_not_end_the_wait_for_a_line_is_handled(pipe):
    """Another thread receives it, so the system call of this one goes on."""
    lines, file = pipe
    before = signal.signal(signal.SIGUSR1, raise_error)
    line_came = threading.Event()

    def send_signal():
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    def send_line():
        line_came.set()
        file.write(b"late\n")

    sender, late = threading.Timer(1, send_signal), threading.Timer(30, send_line)
    late.start()
    sender.start()
    with pytest.raises(SignalError):
        next(lines)
    late.cancel()
    signal.signal(signal.SIGUSR1, before)
    assert not line_came.is_set()
