"""Applies a function to the lines of files of any length; interrupted runs can be resumed.

Lines are read, processed and written in windows, so memory holds one window whatever the length of
the file. Every output corresponds to the input line by line and in order. It is written as
`<name>.partial` and gets its name when it is complete.

A window of stdin also ends when the next line does not arrive within `WAIT`, and on a terminal
after each line, so that a person or a program gets an answer before the end of the input.
"""

import contextlib
import io
import itertools
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from tf_transformer.arriving_lines import ArrivingLines
from tf_transformer.errors import InputError
from tf_transformer.files import align, decode, lines_of, read_aligned, read_lines
from tf_transformer.progress_bar import ProgressBar
from tf_transformer.text_lines import STDIN, chunks_of, without_ends

WINDOW = 10_000
WAIT = 0.2  # seconds

Progress = Callable[[int, int], object]
"""progress(sentences newly done, target tokens in them)."""

Step = Callable[..., Sequence[Any]]
"""step(a window of lines of each input, ..., progress=) -> one result per line."""


@dataclass(frozen=True)
class Output:
    """A file for results, and the lines to write for each.

    Attributes:
        path: a file; stdout when empty.
        lines_of: lines_of(number, result) gives the lines for input line `number`, counted from
            0: exactly one, or any number of lines that start with the number and a space when
            `numbered`.
        numbered: see lines_of.
    """

    path: str
    lines_of: Callable[[int, Any], Iterable[str]]
    numbered: bool = False

    @property
    def partial(self) -> pathlib.Path:
        """Its path until it is complete."""
        return pathlib.Path(self.path + ".partial")


class SentenceProgress:
    """Shows sentences, target tokens per second and, if the total is known, time left on stderr.

    Args:
        total: number of sentences; None: unknown.
        done: sentences done before.
        shown: whether anything is shown.
    """

    def __init__(self, total: int | None, done: int = 0, shown: bool = True):
        self._tokens = 0
        self._bar = ProgressBar("sentences", total, done, shown)

    def __enter__(self) -> "SentenceProgress":
        return self

    def __exit__(self, *_) -> None:
        self._bar.close()

    def advance(self, sentences: int, tokens: int) -> None:
        """Adds finished sentences and the target tokens in them."""
        self._tokens += tokens
        speed = self._tokens / max(self._bar.elapsed, 1e-3)
        self._bar.advance(sentences, [f"{speed:,.0f} tokens/s"])

    def catch_up(self, done: int) -> None:
        """Adds sentences that were not reported, such as blank lines, up to a total of `done`."""
        self._bar.advance(done - self._bar.done)


class Stream:
    """Aligned inputs, a step, and outputs aligned with them.

    Args:
        inputs: files, plain or compressed, with equal numbers of lines; the first may be "", stdin.
        outputs: the length of the first one determines where an interrupted run is resumed.
        window: number of lines processed at once; on stdin the largest number.
        resume: whether to continue existing partial outputs.

    Raises:
        InputError: for missing inputs, existing outputs, or inputs of unequal length.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        outputs: Sequence[Output],
        window: int = WINDOW,
        resume: bool = False,
    ):
        self.inputs = inputs
        self.outputs = outputs
        self.window = window
        self._files = [output for output in outputs if output.path]
        if window <= 0:
            raise InputError(f"the window must be positive, got {window} lines.")
        if resume and not (inputs[0] and outputs[0].path):
            raise InputError(
                "only files can be resumed: --resume needs the --input and --output of the "
                "interrupted run."
            )
        self._refuse_to_overwrite(resume)
        lines = sum(1 for _ in read_aligned(*filter(None, inputs)))  # checks the files, too
        self.total = lines if inputs[0] else None
        self.done = self._lines_to_keep() if resume else 0

    def run(self, step: Step) -> None:
        """Calls `step` for each window and writes its results."""
        names = [path or STDIN for path in self.inputs]
        lines, continues = _first_lines(self.inputs[0])
        files = [lines, *map(read_lines, self.inputs[1:])]
        rows = align(names, list(map(decode, files, names)))
        windows = self._windows(itertools.islice(rows, self.done, None), continues)
        with contextlib.ExitStack() as stack:
            handles = [stack.enter_context(_opened(output, self.done)) for output in self.outputs]
            shown = bool(self.inputs[0]) or not sys.stdin.isatty()
            bar = stack.enter_context(SentenceProgress(self.total, self.done, shown))
            for window in windows:
                self._process(window, step, handles, bar)
                bar.catch_up(self.done)
                del window  # before the next one is read
        for output in reversed(self._files):
            output.partial.rename(output.path)

    def _windows(
        self, rows: Iterator[tuple[str, ...]], continues: Callable[[], bool]
    ) -> Iterator[list[tuple[str, ...]]]:
        """The rows in windows: full, or up to a row after which `continues` returns False."""
        window = []
        for row in rows:
            window.append(row)
            if len(window) == self.window or not continues():
                yield window
                window = []
        if window:
            yield window

    def _process(
        self,
        window: Sequence[tuple[str, ...]],
        step: Step,
        handles: Sequence[BinaryIO],
        bar: SentenceProgress,
    ) -> None:
        """Processes a window.

        The first output is written last: all others have at least its lines.
        """
        results = step(*map(list, zip(*window, strict=True)), progress=bar.advance)
        for output, handle in reversed(list(zip(self.outputs, handles, strict=True))):
            for number, result in enumerate(results, self.done):
                for line in output.lines_of(number, result):
                    handle.write(line.encode("utf-8") + b"\n")
            handle.flush()
            if output.path:
                os.fsync(handle.fileno())
        self.done += len(window)

    def _refuse_to_overwrite(self, resume: bool) -> None:
        paths = [output.path for output in self._files]
        if len(set(paths)) < len(paths):
            raise InputError(f"expected a different file for each output, got {', '.join(paths)}.")
        for output in self._files:
            if os.path.exists(output.path):
                raise InputError(
                    f"{output.path} exists already and is complete. Move it away, or give another "
                    "name."
                )
            if output.partial.exists() and not resume:
                raise InputError(
                    f"{output.partial} exists, from an interrupted run. Add --resume to continue "
                    "it, or remove the file."
                )

    def _lines_to_keep(self) -> int:
        """Number of finished lines, in whole windows; cuts every output there.

        The interrupted window is processed again from its start, so that its batches, and the last
        digits of its scores, equal those of an uninterrupted run.
        """
        partial = self.outputs[0].partial
        written = _complete_lines(partial)
        if written > (self.total or 0):
            raise InputError(
                f"{partial} has {written:,} lines, but {self.inputs[0]} has only {self.total:,}. "
                "Give the input of the interrupted run."
            )
        done = written // self.window * self.window
        for output in self._files:
            _cut(output, done)
        return done


def _first_lines(path: str) -> tuple[Iterator[bytes], Callable[[], bool]]:
    """The lines of a file, or of stdin if `path` is empty, and whether the window continues.

    It does not on a terminal, nor when the next line does not arrive within `WAIT`.
    """
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


@contextlib.contextmanager
def _opened(output: Output, done: int) -> Iterator[BinaryIO]:
    if not output.path:
        yield sys.stdout.buffer
        return
    output.partial.parent.mkdir(parents=True, exist_ok=True)
    with output.partial.open("ab" if done else "wb") as handle:
        yield handle


def _complete_lines(path: pathlib.Path) -> int:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as lines:
        return sum(line.endswith(b"\n") for line in lines)
    return 0


def _cut(output: Output, done: int) -> None:
    """Truncates a partial output to the lines for the first `done` lines of the input."""
    if not done:
        return  # `_opened` truncates it
    size = count = 0
    with contextlib.suppress(FileNotFoundError), output.partial.open("rb") as lines:
        for place, line in enumerate(lines):
            digits = line.partition(b" ")[0]
            number = int(digits) if output.numbered and digits.isdigit() else place
            if number >= done or not line.endswith(b"\n"):
                break
            size, count = size + len(line), number + 1
    if count != done:
        raise InputError(
            f"{output.partial} covers {count:,} lines of the input, the other outputs {done:,}. "
            "Give the outputs of the interrupted run."
        )
    os.truncate(output.partial, size)
