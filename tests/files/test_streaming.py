"""Windows of lines: order, count, memory, and resuming after an interruption."""

import gzip
import io
import itertools
import os
import re
import signal
import sys
import threading
import tracemalloc

import pytest

from tf_transformer.errors import InputError
from tf_transformer.files.streaming import Output, SentenceProgress, Stream

ODD = "one\n\n  \ntwo\u2028three\x85four\n\ufeff\r\nbroken ".encode() + b"\xff\xfe\n\x00\t\nlast"
ODD_LINES = [
    "one",
    "",
    "  ",
    "two\u2028three\x85four",
    "\ufeff",
    "broken \ufffd\ufffd",
    "\0\t",
    "last",
]


def same(lines, progress):
    return lines


def one(number, line):
    return [line]


def several(number, line):
    """A different number of lines for each result, like n-best lists."""
    return [f"{number} ||| {line} {n}" for n in range(number % 3 or 1)]


def outputs_in(folder):
    return [
        Output(str(folder / "out"), one),
        Output(str(folder / "several"), several, numbered=True),
        Output(str(folder / "numbers"), lambda number, line: [str(number)]),
    ]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("".join(f"line {n}\n" for n in range(25)), "utf-8")
    return str(path)


@pytest.fixture
def uninterrupted(tmp_path, source):
    folder = tmp_path / "uninterrupted"
    Stream([source], outputs_in(folder), window=4).run(same)
    return contents(folder)


def interrupt(folder, source, windows, window=4):
    """Leaves the partial outputs of a run that was interrupted after some windows."""
    calls = itertools.count(1)

    def step(lines, progress):
        if next(calls) > windows:
            raise KeyboardInterrupt
        return lines

    with pytest.raises(KeyboardInterrupt):
        Stream([source], outputs_in(folder), window=window).run(step)


@pytest.mark.parametrize("window", [1, 3, 100])
@pytest.mark.parametrize("name", ["in.txt", "in.txt.gz"])
def test_each_line_gives_one_line_and_only_newlines_end_lines(tmp_path, name, window):
    (tmp_path / name).write_bytes(gzip.compress(ODD) if name.endswith(".gz") else ODD)
    sizes = []

    def step(lines, progress):
        sizes.append(len(lines))
        return lines

    Stream([str(tmp_path / name)], [Output(str(tmp_path / "out"), one)], window).run(step)
    assert (tmp_path / "out").read_text("utf-8").split("\n") == [*ODD_LINES, ""]
    assert max(sizes) == min(window, len(ODD_LINES))
    assert sum(sizes) == len(ODD_LINES)


def test_stdin_to_stdout(monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ODD)))
    Stream([""], [Output("", one)], window=3).run(same)
    assert capsysbinary.readouterr().out.decode() == "".join(f"{line}\n" for line in ODD_LINES)


@pytest.fixture
def deadline():
    """Ends a test that would wait forever."""

    def expire(number, frame):
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, expire)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def from_descriptor(monkeypatch, descriptor):
    """Makes an open file stdin."""
    buffer = io.BufferedReader(io.FileIO(descriptor))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(buffer))


def test_a_file_of_another_encoding_gives_one_warning(tmp_path, capsys):
    path = tmp_path / "in.txt"
    path.write_bytes("Haus\nTür\nBär\nMöwe\n".encode("latin-1"))
    Stream([str(path)], outputs_in(tmp_path), window=1).run(same)
    assert (tmp_path / "out").read_text("utf-8") == "Haus\nT\ufffdr\nB\ufffdr\nM\ufffdwe\n"
    (warning,) = (line for line in capsys.readouterr().err.splitlines() if "UTF-8" in line)
    assert f"{path} is not UTF-8: line 2 " in warning


def test_a_pipe_is_answered_before_its_end(monkeypatch, capsysbinary, deadline):
    """Each answer is written before the next lines are sent."""
    reading, writing = os.pipe()
    from_descriptor(monkeypatch, reading)
    windows, answers = [], []

    def step(lines, progress):
        windows.append(lines)
        answers.append(capsysbinary.readouterr().out)
        if len(windows) == 1:
            os.write(writing, b"two\nthree\nfour\nfive")
        elif len(windows) == 2:
            os.close(writing)
        return lines

    os.write(writing, b"one\n")
    Stream([""], [Output("", one)], window=2).run(step)
    assert windows == [["one"], ["two", "three"], ["four", "five"]]
    assert answers == [b"", b"one\n", b"two\nthree\n"]


def test_a_terminal_is_answered_after_each_line_without_a_bar(monkeypatch, capfd, deadline):
    terminal, reading = os.openpty()
    from_descriptor(monkeypatch, reading)
    windows = []
    os.write(terminal, b"one\ntwo\n\x04")  # Ctrl-D ends the input
    Stream([""], [Output("", one)]).run(lambda lines, progress: windows.append(lines) or lines)
    assert windows == [["one"], ["two"]]
    found = capfd.readouterr()
    assert (found.out, found.err) == ("one\ntwo\n", "")


def test_a_file_on_stdin_has_full_windows(monkeypatch, source, capsysbinary):
    from_descriptor(monkeypatch, os.open(source, os.O_RDONLY))
    sizes = []
    Stream([""], [Output("", one)], window=10).run(
        lambda lines, progress: sizes.append(len(lines)) or lines
    )
    assert sizes == [10, 10, 5]


def test_an_empty_input_gives_an_empty_output(tmp_path):
    (tmp_path / "in").write_bytes(b"")
    Stream([str(tmp_path / "in")], [Output(str(tmp_path / "out"), one)]).run(same)
    assert (tmp_path / "out").read_bytes() == b""


def test_every_output_is_aligned_with_the_input(uninterrupted):
    assert uninterrupted["out"] == b"".join(b"line %d\n" % n for n in range(25))
    assert uninterrupted["numbers"] == b"".join(b"%d\n" % n for n in range(25))
    assert uninterrupted["several"].startswith(
        b"0 ||| line 0 0\n1 ||| line 1 0\n2 ||| line 2 0\n2 ||| line 2 1\n3 ||| line 3 0\n"
    )


def test_a_second_input_is_aligned_with_the_first(tmp_path, source):
    (tmp_path / "b").write_text("".join(f"{n}\n" for n in range(25)), "utf-8")
    windows = []
    stream = Stream([source, str(tmp_path / "b")], [Output(str(tmp_path / "out"), one)], window=4)
    stream.run(lambda *columns, progress: windows.append(columns) or columns[0])
    assert windows[1] == (["line 4", "line 5", "line 6", "line 7"], ["4", "5", "6", "7"])


def test_the_same_file_may_be_given_twice(tmp_path, source):
    columns = []
    stream = Stream([source, source], [Output(str(tmp_path / "out"), one)])
    stream.run(lambda first, second, progress: columns.append((first, second)) or first)
    assert columns[0][0] == columns[0][1]


def test_a_file_gets_its_name_when_it_is_complete(tmp_path, source):
    folder = tmp_path / "new" / "folder"
    interrupt(folder, source, windows=2)
    found = contents(folder)
    outputs = {"out.partial", "several.partial", "numbers.partial"}
    assert found.keys() == {*outputs, "out.partial.json"}
    assert found["out.partial"].count(b"\n") == 8
    Stream([source], outputs_in(folder), window=4, resume=True).run(same)
    assert contents(folder).keys() == {"out", "several", "numbers"}


@pytest.mark.parametrize("windows", [0, 2, 6])
def test_an_interrupted_run_is_resumed(tmp_path, source, uninterrupted, windows):
    folder = tmp_path / "interrupted"
    interrupt(folder, source, windows)
    done = []
    stream = Stream([source], outputs_in(folder), window=4, resume=True)
    stream.run(lambda lines, progress: done.extend(lines) or lines)
    assert contents(folder) == uninterrupted
    assert done == [f"line {n}" for n in range(4 * windows, 25)]


@pytest.mark.parametrize("kept", [0, 1, 27, 28, 29, 60, 64, 65])
def test_lines_missing_in_the_first_output_are_processed_again(
    tmp_path, source, uninterrupted, kept
):
    """It is written last, so the others may have more lines, and a part of a line."""
    folder = tmp_path / "interrupted"
    interrupt(folder, source, windows=5)
    with (folder / "out.partial").open("r+b") as file:
        file.truncate(kept)
    with (folder / "several.partial").open("ab") as file:
        file.write(b"20 ||| line 20 0\n2")
    Stream([source], outputs_in(folder), window=4, resume=True).run(same)
    assert contents(folder) == uninterrupted


def test_the_other_outputs_have_all_lines_of_the_first(tmp_path, source, uninterrupted):
    """The interruption comes between the outputs of one window."""
    folder = tmp_path / "interrupted"

    def interrupted(number, line):
        if number == 10:
            raise KeyboardInterrupt
        return [line]

    outputs = outputs_in(folder)
    outputs[0] = Output(outputs[0].path, interrupted)
    with pytest.raises(KeyboardInterrupt):
        Stream([source], outputs, window=4).run(same)
    assert contents(folder)["numbers.partial"].count(b"\n") == 12
    Stream([source], outputs_in(folder), window=4, resume=True).run(same)
    assert contents(folder) == uninterrupted


def test_a_window_is_on_disk_before_the_next_starts(tmp_path, source, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(handle))
    outputs = outputs_in(tmp_path / "new")
    seen = []

    def step(lines, progress):
        seen.append((len(synced), outputs[0].partial.read_bytes().count(b"\n")))
        return lines

    Stream([source], outputs, window=10).run(step)
    assert seen == [(0, 0), (3, 10), (6, 20)]


def test_a_resumed_run_has_the_windows_of_an_uninterrupted_one(tmp_path, source):
    """Its batches, and therefore its rounding, are then the same."""
    folder = tmp_path / "interrupted"
    interrupt(folder, source, windows=2)
    with (folder / "out.partial").open("ab") as file:
        file.write(b"line 8\nline 9\nli")
    windows = []
    stream = Stream([source], outputs_in(folder), window=4, resume=True)
    stream.run(lambda lines, progress: windows.append(lines) or lines)
    assert windows[0] == ["line 8", "line 9", "line 10", "line 11"]


def test_resume_without_partial_outputs_starts_a_new_run(tmp_path, source, uninterrupted):
    Stream([source], outputs_in(tmp_path / "new"), window=4, resume=True).run(same)
    assert contents(tmp_path / "new") == uninterrupted


@pytest.mark.parametrize(("source_path", "output_path"), [("", "out"), ("in", "")])
def test_only_files_can_be_resumed(source_path, output_path):
    with pytest.raises(InputError, match="--resume needs files: give the --input and the --outp"):
        Stream([source_path], [Output(output_path, one)], resume=True)


def test_a_partial_file_longer_than_the_input_is_an_error(tmp_path, source):
    (tmp_path / "out.partial").write_bytes(b"x\n" * 26)
    with pytest.raises(InputError, match=r"out.partial has 26 lines, but .*in.txt has only 25"):
        Stream([source], [Output(str(tmp_path / "out"), one)], resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_complete_file_is_not_overwritten(tmp_path, source, resume):
    (tmp_path / "out").write_bytes(b"precious\n")
    with pytest.raises(InputError, match=r"out exists already. Move it away"):
        Stream([source], [Output(str(tmp_path / "out"), one)], resume=resume)
    assert (tmp_path / "out").read_bytes() == b"precious\n"


def test_a_partial_file_is_not_overwritten_without_resume(tmp_path, source):
    interrupt(tmp_path, source, windows=2)
    before = contents(tmp_path)
    with pytest.raises(
        InputError, match=r"out.partial exists, from an interrupted run. Add --resume"
    ):
        Stream([source], outputs_in(tmp_path), window=4)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_partial_file_without_a_record_is_never_touched(tmp_path, source, resume):
    """An earlier version wrote it, or another program."""
    (tmp_path / "out.partial").write_bytes(b"precious\n")
    with pytest.raises(InputError, match=r"out.partial .*Move the file away"):
        Stream([source], [Output(str(tmp_path / "out"), one)], resume=resume).run(same)
    assert (tmp_path / "out.partial").read_bytes() == b"precious\n"


@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("input", "another input"),
        ("option", "--beam_size was 4, now 2"),
        ("missing option", "--prefixes was None, now True"),
        ("model", "another checkpoint"),
    ],
)
def test_only_the_same_work_is_resumed(tmp_path, kept, change, message):
    """Whatever part of it is done, and however long the new input is."""
    text, out = tmp_path / "in.txt", tmp_path / "out"
    text.write_text("a\nb\nc\nd\n")

    def start(resume, options, contents, fail_at=None):
        def lines_of(number, line):
            if number == fail_at:
                raise KeyboardInterrupt
            return [line]

        stream = Stream([str(text)], [Output(str(out), lines_of)], window=2, resume=resume)
        stream.depends_on(options, contents)
        stream.run(same)

    options, model = {"--beam_size": 4, "--dtype": "float32"}, {"checkpoint": "abc"}
    with pytest.raises(KeyboardInterrupt):
        start(False, options, model, fail_at=kept)
    before = contents(tmp_path)
    others, other_model = dict(options), dict(model)
    if change == "input":
        text.write_text("a\nb\nc\nD\ne\n")
        before["in.txt"] = text.read_bytes()
    elif change == "option":
        others["--beam_size"] = 2
    elif change == "missing option":
        others["--prefixes"] = True
    else:
        other_model["checkpoint"] = "abd"
    if not kept:  # nothing is done, so any work may start
        start(True, others, other_model)
        assert out.read_text() == text.read_text()
        return
    with pytest.raises(InputError, match=f"out.partial belongs to .*{message}"):
        start(True, others, other_model)
    assert contents(tmp_path) == before
    if change != "input":
        start(True, options, model)
        assert out.read_text() == text.read_text()
        assert not list(tmp_path.glob("*.partial*"))


def test_two_processes_do_not_write_one_output(tmp_path, source):
    out = Output(str(tmp_path / "out"), one)
    second = Stream([source], [out])

    def step(lines, progress):
        with pytest.raises(InputError, match=r"another process is writing .*out\.partial"):
            second.run(same)
        return lines

    Stream([source], [out], window=30).run(step)
    with pytest.raises(InputError, match="out exists already"):
        second.run(same)
    assert (tmp_path / "out").read_bytes().count(b"\n") == 25


def test_devices_and_pipes_are_written_at_once(tmp_path, source):
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    outputs = [Output(str(tmp_path / "pipe"), one), Output(os.devnull, one)]
    Stream([source], [*outputs, Output(os.devnull, one)]).run(same)
    reader.join()
    assert received[0].count(b"\n") == 25
    assert not list(tmp_path.glob("*.partial*"))


def test_a_different_output_than_the_interrupted_runs_is_an_error(tmp_path, source):
    folder = tmp_path / "interrupted"
    interrupt(folder, source, windows=2)
    (folder / "numbers.partial").unlink()
    with pytest.raises(
        InputError, match=r"numbers.partial covers 0 lines .* other outputs cover 8"
    ):
        Stream([source], outputs_in(folder), window=4, resume=True)


def test_two_outputs_in_one_file_are_an_error(source):
    with pytest.raises(InputError, match="expected a different file for each output, got x, x"):
        Stream([source], [Output("x", one), Output("x", one)])


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_without_lines_is_an_error(source, window):
    with pytest.raises(InputError, match=f"the window must be positive, got {window} lines"):
        Stream([source], [Output("x", one)], window)


def test_a_missing_input_is_an_error_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        Stream([str(tmp_path / "missing")], [Output(str(tmp_path / "out"), one)])
    assert list(tmp_path.iterdir()) == []


def test_inputs_of_unequal_length_are_an_error(tmp_path, source, monkeypatch):
    (tmp_path / "short").write_text("a\nb\n", "utf-8")
    output = [Output(str(tmp_path / "out"), one)]
    with pytest.raises(InputError, match=r"short ends after line 2, but .*in.txt has more lines"):
        Stream([source, str(tmp_path / "short")], output)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\nc\n")))
    with pytest.raises(InputError, match="short ends after line 2, but stdin has more lines"):
        Stream(["", str(tmp_path / "short")], output).run(lambda lines, others, progress: lines)


def test_memory_does_not_grow_with_the_file(tmp_path):
    """Ten times as many lines have the same peak."""
    peaks = []
    for count in (20_000, 200_000):
        path = tmp_path / f"{count}.txt"
        with path.open("w") as lines:
            lines.writelines(f"the sentence with the number {n}\n" for n in range(count))
        stream = Stream([str(path)], [Output(str(path) + ".out", one)], window=1000)
        tracemalloc.start()
        stream.run(lambda lines, progress: [line.upper() for line in lines])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 2e6


def test_progress_has_sentences_tokens_per_second_and_time_left(capsys):
    with SentenceProgress(total=10) as progress:
        progress.add(3, 60)
        progress.catch_up(5)
    first, last = capsys.readouterr().err.splitlines()
    assert re.match(r"30%, 3/10, 00:0\d left, [\d,]+ tokens/s, [\d,.]+ sentences/s, ", first)
    assert last.startswith("50%, 5/10, ")
    with SentenceProgress(total=None) as progress:
        progress.add(3, 60)
    assert re.match(r"3, [\d,]+ tokens/s, [\d,.]+ sentences/s, ", capsys.readouterr().err)
