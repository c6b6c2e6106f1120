"""Applies a function to the lines of files of any length; an interrupted run can be resumed.

Lines are read, processed and written in windows. Each output corresponds to the input line by line.
It is written as `<name>.partial`, and gets its name when it is complete. A record beside it stores
the inputs and options, so that only the same work is resumed. A window of stdin also ends when the
next line does not arrive within `WAIT`, and on a terminal after each line.
"""

import contextlib
import hashlib
import io
import itertools
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from tf_transformer.errors import InputError
from tf_transformer.files.arriving_lines import ArrivingLines
from tf_transformer.files.outputs import is_stream, require_distinct, require_free
from tf_transformer.files.reading import align, decode, lines_of, read_aligned, read_lines
from tf_transformer.files.start_record import StartRecord
from tf_transformer.files.text_lines import STDIN, chunks_of, without_ends
from tf_transformer.machine.progress_bar import ProgressBar

WINDOW = 10_000
WAIT = 0.2  # seconds

Progress = Callable[[int, int], object]
"""A function of two numbers: sentences done since the last call, and their target tokens."""
Step = Callable[..., Sequence[Any]]
"""A function of a window of lines of each input, and `progress=`. It returns a result per line."""


@dataclass(frozen=True)
class Output:
    """A file for results, and the lines that it gets for each result.

    `lines_of` takes the number of an input line, from 0, and its result. It returns exactly one
    line. With `numbered`, it returns any number of lines that start with the number and a space.
    """

    path: str  # empty: stdout
    lines_of: Callable[[int, Any], Iterable[str]]
    numbered: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it gets its name when it is complete. Devices and pipes are written directly."""
        return bool(self.path) and not is_stream(self.path)

    @property
    def partial(self) -> pathlib.Path:
        """The path of the file until it is complete."""
        return pathlib.Path(os.path.realpath(self.path) + ".partial")

    def opened(self) -> contextlib.AbstractContextManager[BinaryIO]:
        """Opens the output at its end."""
        if not self.path:
            return contextlib.nullcontext(sys.stdout.buffer)
        path = self.partial if self.is_file else pathlib.Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")

    def write(self, handle: BinaryIO, first: int, results: Sequence[Any]) -> None:
        """Writes the lines of the results for the input lines from `first` on."""
        for number, result in enumerate(results, first):
            for line in self.lines_of(number, result):
                handle.write(line.encode("utf-8") + b"\n")
        handle.flush()
        if self.is_file:
            os.fsync(handle.fileno())

    def publish(self, overwrite: bool) -> None:
        """Gives the complete file its name. If there is a file by now, the partial name stays."""
        try:
            require_free([self.path], overwrite=overwrite)
        except InputError as error:
            raise InputError(f"{error} The complete output is {self.partial}.") from error
        os.replace(self.partial, os.path.realpath(self.path))

    def bytes_to_keep(self, done: int) -> int:
        """The size in bytes of the lines for the first `done` lines of the input."""
        size = count = 0
        if done:
            with contextlib.suppress(FileNotFoundError), self.partial.open("rb") as lines:
                for place, line in enumerate(lines):
                    digits = line.partition(b" ")[0]
                    number = int(digits) if self.numbered and digits.isdigit() else place
                    if number >= done or not line.endswith(b"\n"):
                        break
                    size, count = size + len(line), number + 1
        if count != done:
            raise InputError(
                f"{self.partial} covers {count:,} lines of the input, but other outputs cover "
                f"{done:,}. Give the outputs of the interrupted run."
            )
        return size


class SentenceProgress(ProgressBar):
    """The progress of sentences, with target tokens per second."""

    def __init__(self, total: int | None, done: int = 0, shown: bool = True):
        super().__init__("sentences", total, done, shown)
        self._tokens = 0

    def add(self, sentences: int, tokens: int) -> None:
        """Adds finished sentences and the target tokens in them."""
        self._tokens += tokens
        speed = self._tokens / max(self.elapsed, 1e-3)
        self.advance(sentences, [f"{speed:,.0f} tokens/s"])

    def catch_up(self, done: int) -> None:
        """Adds unreported sentences, such as blank lines, up to a total of `done`."""
        self.advance(done - self.done)


@dataclass
class Stream:
    """Applies a step to aligned inputs, and writes aligned outputs.

    Missing inputs, existing outputs, or inputs of unequal length are an `InputError`.
    """

    inputs: Sequence[str]  # files, plain or compressed; the first may be "", which is stdin
    outputs: Sequence[Output]  # an interrupted run resumes after the last line of the first
    window: int = WINDOW  # number of lines in a window; on stdin the largest number
    resume: bool = False  # continue existing partial outputs
    overwrite: bool = False  # replace existing files when the outputs are complete

    def __post_init__(self) -> None:
        self._files = [output for output in self.outputs if output.is_file]
        self._record = StartRecord(self._files[0].partial) if self._files else None
        self._is_resumable = bool(self.inputs[0]) and self.outputs[0].is_file
        if self.window <= 0:
            raise InputError(f"the window must be positive, got {self.window} lines.")
        if self.resume and not self._is_resumable:
            raise InputError(
                "--resume needs files: give the --input and the --output of the interrupted run."
            )
        self._refuse_to_overwrite()
        count, content = 0, hashlib.sha256()
        for row in read_aligned(*filter(None, self.inputs)):
            count += 1
            content.update(b"\n".join((*row, b"")))
        self.total = count if self.inputs[0] else None
        self.done = self._lines_to_keep() if self.resume else 0
        if self._record:
            self._record.contents["input"] = content.hexdigest()

    def depends_on(self, options: Mapping[str, Any], contents: Mapping[str, str]) -> None:
        """Records options, and hashes of contents such as weights, that the outputs depend on.

        Existing partial outputs with other options or contents are an `InputError`.
        """
        if self._record:
            self._record.options.update(options)
            self._record.contents.update(contents)
            if self._non_empty_partials():
                self._record.require_same()

    def _non_empty_partials(self) -> list[pathlib.Path]:
        partials = [output.partial for output in self._files]
        return [path for path in partials if path.exists() and path.stat().st_size]

    def run(self, step: Step) -> None:
        """Calls `step` for each window, and writes the results.

        An `InputError` is raised as in `depends_on`, or when another process writes the outputs.
        """
        if not self._record:
            self._write(step)
            return
        if self._non_empty_partials():
            self._record.require_same()
        self._record.begin()
        try:
            self._refuse_to_overwrite()  # files that another process wrote before it ended
            for output in self._files:
                if output.partial.exists():
                    os.truncate(output.partial, output.bytes_to_keep(self.done))
            self._write(step)
        finally:
            nothing_to_resume = not self._non_empty_partials()
            if nothing_to_resume:
                for output in self._files:
                    output.partial.unlink(missing_ok=True)
            self._record.end(remove=nothing_to_resume)

    def _write(self, step: Step) -> None:
        names = [path or STDIN for path in self.inputs]
        lines, continues = _first_lines(self.inputs[0])
        files = [lines, *map(read_lines, self.inputs[1:])]
        rows = align(names, list(map(decode, files, names)))
        windows = self._windows(itertools.islice(rows, self.done, None), continues)
        with contextlib.ExitStack() as stack:
            opened = [(output, stack.enter_context(output.opened())) for output in self.outputs]
            shown = bool(self.inputs[0]) or not sys.stdin.isatty()
            bar = stack.enter_context(SentenceProgress(self.total, self.done, shown))
            for window in windows:
                results = step(*map(list, zip(*window, strict=True)), progress=bar.add)
                for output, handle in reversed(opened):  # others have all lines of the first
                    output.write(handle, self.done, results)
                self.done += len(window)
                bar.catch_up(self.done)
                del window, results  # frees memory before the next window is read
        for output in reversed(self._files):
            output.publish(self.overwrite)

    def _windows(
        self, rows: Iterator[tuple[str, ...]], continues: Callable[[], bool]
    ) -> Iterator[list[tuple[str, ...]]]:
        """The rows in windows; a window ends when it is full or `continues` returns False."""
        window = []
        for row in rows:
            window.append(row)
            if len(window) == self.window or not continues():
                yield window
                window = []
        if window:
            yield window

    def _refuse_to_overwrite(self) -> None:
        inputs = list(filter(None, self.inputs))
        outputs = [output.path for output in self.outputs if output.path]
        require_free(outputs, inputs, self.overwrite)
        if not self._record:
            return
        partials = [output.partial for output in self._files]
        files = [output.path for output in self._files]
        require_distinct([*files, *partials, self._record.path], inputs)
        full = self._non_empty_partials()
        if full and not self.resume:
            advice = "Move the file away."
            if self._is_resumable and self._record.exists():
                advice = "Add --resume to continue it, or remove the file."
            raise InputError(f"{full[0]} exists, from an interrupted run. {advice}")

    def _lines_to_keep(self) -> int:
        """The number of finished lines in whole windows; each output must have them.

        The interrupted window is processed again from its start. Its batches, and so the last
        digits of its scores, equal the batches and scores of an uninterrupted run.
        """
        partial, written = self.outputs[0].partial, 0
        with contextlib.suppress(FileNotFoundError), partial.open("rb") as lines:
            written = sum(line.endswith(b"\n") for line in lines)
        if written > (self.total or 0):
            raise InputError(
                f"{partial} has {written:,} lines, but {self.inputs[0]} has only {self.total:,}. "
                "Give the input of the interrupted run."
            )
        done = written // self.window * self.window
        for output in self._files:
            output.bytes_to_keep(done)
        return done


def _first_lines(path: str) -> tuple[Iterator[bytes], Callable[[], bool]]:
    """The lines of a file or of stdin (`path` is empty), and whether the window continues."""
    if path:
        return read_lines(path), lambda: True
    try:
        lines = ArrivingLines(sys.stdin.fileno())
    except io.UnsupportedOperation:  # a Python object in place of an open file
        return lines_of(chunks_of(sys.stdin.buffer), STDIN), lambda: True
    texts = without_ends(lines, STDIN)
    if sys.stdin.isatty():
        return texts, lambda: False
    return texts, lambda: lines.next_arrives_within(WAIT)
