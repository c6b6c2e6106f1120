"""Files of any length through a function of some lines; what was interrupted goes on.

A window of lines is read, worked on and written before the next one is read, so memory holds one
window whatever the length of the file. Every output has something for each line of the input, in
the order of the input. It is written beside its name, as `<name>.partial`, and gets the name when
all of it is there.
"""

import contextlib
import itertools
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO

from tqdm import tqdm

from tf_transformer.errors import InputError
from tf_transformer.files import read_lines

WINDOW = 10_000

Progress = Callable[[int, int], object]
"""progress(sentences newly done, target tokens in them)."""

Step = Callable[..., Sequence[Any]]
"""step(a window of lines of each input, ..., progress=) -> a result for each line."""


@dataclass(frozen=True)
class Output:
    """What is written of the results, and where.

    Attributes:
        path: a file; stdout when empty.
        lines_of: lines_of(number, result) gives the lines for input line `number`, counted from
            0: one, or any number that start with the number and a blank when `numbered`.
        numbered: see lines_of.
    """

    path: str
    lines_of: Callable[[int, Any], Iterable[str]]
    numbered: bool = False

    @property
    def partial(self) -> pathlib.Path:
        """Where it is written until it is whole."""
        return pathlib.Path(self.path + ".partial")


class ProgressBar:
    """Sentences, target tokens a second and, where the total is known, time left, on stderr.

    Args:
        total: sentences in all; None: unknown.
        done: sentences done before.
    """

    def __init__(self, total: int | None, done: int = 0):
        self._tokens = 0
        self._bar = tqdm(total=total, initial=done, unit="sentence", mininterval=0.5)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()

    def advance(self, sentences: int, tokens: int) -> None:
        """Adds sentences that are done, and the target tokens in them."""
        self._tokens += tokens
        speed = self._tokens / max(self._bar.format_dict["elapsed"], 1e-3)
        self._bar.set_postfix_str(f"{speed:,.0f} tokens/s", refresh=False)
        self._bar.update(sentences)

    def catch_up(self, done: int) -> None:
        """Counts what no one reported, as blank lines."""
        self._bar.update(done - self._bar.n)


class Stream:
    """Aligned inputs, a step, and outputs aligned with them.

    Args:
        inputs: files, plain or .gz, with as many lines each; the first may be "", stdin.
        outputs: the first is the one whose lines say how far an interrupted run came.
        window: lines worked on at once.
        resume: whether to go on with the partial outputs that are there.

    Raises:
        InputError: for files that are missing or in the way, or of unequal length.
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
                "only files can be gone on with: --resume needs --input and --output, as the "
                "interrupted run had them."
            )
        self._refuse_to_overwrite(resume)
        counts = {path: sum(1 for _ in read_lines(path)) for path in inputs if path}
        for path, count in counts.items():
            if inputs[0] and count != counts[inputs[0]]:
                raise InputError(
                    f"{path} has {count:,} lines and {inputs[0]} {counts[inputs[0]]:,}; line n of "
                    "one must belong to line n of the other."
                )
        self.total = counts.get(inputs[0])
        self.done = self._resumed() if resume else 0

    def run(self, step: Step) -> None:
        """Calls `step` window by window and writes what it gives."""
        rows = itertools.islice(_rows(self.inputs), self.done, None)
        with contextlib.ExitStack() as stack:
            handles = [stack.enter_context(_opened(output, self.done)) for output in self.outputs]
            bar = stack.enter_context(ProgressBar(self.total, self.done))
            while self._one_window(step, rows, handles, bar):
                bar.catch_up(self.done)
        for output in reversed(self._files):
            output.partial.rename(output.path)

    def _one_window(
        self,
        step: Step,
        rows: Iterator[tuple[str, ...]],
        handles: Sequence[BinaryIO],
        bar: ProgressBar,
    ) -> bool:
        """Works on the next window; False when there is none.

        The first output is written last: what it has, all have.
        """
        window = list(itertools.islice(rows, self.window))
        if not window:
            return False
        results = step(*map(list, zip(*window, strict=True)), progress=bar.advance)
        for output, handle in reversed(list(zip(self.outputs, handles, strict=True))):
            for number, result in enumerate(results, self.done):
                for line in output.lines_of(number, result):
                    handle.write(line.encode("utf-8") + b"\n")
            handle.flush()
            if output.path:
                os.fsync(handle.fileno())
        self.done += len(window)
        return True

    def _refuse_to_overwrite(self, resume: bool) -> None:
        paths = [output.path for output in self._files]
        if len(set(paths)) < len(paths):
            raise InputError(f"each output needs a file of its own, got {', '.join(paths)}.")
        for output in self._files:
            if os.path.exists(output.path):
                raise InputError(
                    f"{output.path} exists already and is whole. Move it away, or give another "
                    "name."
                )
            if output.partial.exists() and not resume:
                raise InputError(
                    f"{output.partial} is there, from an interrupted run. Go on with it by adding "
                    "--resume, or remove it."
                )

    def _resumed(self) -> int:
        """Lines that are done already, in whole windows, and nothing beyond left in any output.

        The window that was cut short is done again from its start, so that its batches, and with
        them the last digits of scores, are those of an uninterrupted run.
        """
        partial = self.outputs[0].partial
        written = _whole_lines(partial)
        if written > (self.total or 0):
            raise InputError(
                f"{partial} has {written:,} lines and {self.inputs[0]} only {self.total:,}: they "
                "do not belong together. Give the input of the interrupted run."
            )
        done = written // self.window * self.window
        for output in self._files:
            _cut(output, done)
        return done


def _rows(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Line n of each input, together."""
    for number, row in enumerate(itertools.zip_longest(*map(_lines, paths)), 1):
        if None in row:
            names = [path or "stdin" for path in paths]
            raise InputError(
                f"{names[row.index(None)]} ends before line {number:,} and another of "
                f"{', '.join(names)} goes on; line n of one must belong to line n of the other."
            )
        yield row


def _lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin; broken UTF-8 is replaced."""
    lines = read_lines(path) if path else _stdin()
    return (line.decode("utf-8", "replace") for line in lines)


def _stdin() -> Iterator[bytes]:
    """As `read_lines`."""
    return (line.removesuffix(b"\n").removesuffix(b"\r") for line in sys.stdin.buffer)


@contextlib.contextmanager
def _opened(output: Output, done: int) -> Iterator[BinaryIO]:
    if not output.path:
        yield sys.stdout.buffer
        return
    output.partial.parent.mkdir(parents=True, exist_ok=True)
    with output.partial.open("ab" if done else "wb") as handle:
        yield handle


def _whole_lines(path: pathlib.Path) -> int:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as lines:
        return sum(line.endswith(b"\n") for line in lines)
    return 0


def _cut(output: Output, done: int) -> None:
    """Leaves in a partial output what belongs to the first `done` lines of the input."""
    if not done:
        return  # it is begun anew
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
            f"{output.partial} reaches to line {count:,} of the input, and the other outputs to "
            f"line {done:,}. Give the outputs that the interrupted run had."
        )
    os.truncate(output.partial, size)
