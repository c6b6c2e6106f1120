"""A step of a pipeline: a command with its options, what it depends on, and how far it is."""

import contextlib
import enum
import hashlib
import json
import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_pieces, read_whole
from tf_transformer.files.start_record import StartRecord
from tf_transformer.machine.programs import run_command
from tf_transformer.run.run import Run


class State(enum.StrEnum):
    """How far a step is. A step to check depends on a step that is not done yet."""

    DONE = "done"
    TO_RESUME = "to resume"
    TO_DO = "to do"
    TO_CHECK = "to check"


@dataclass(frozen=True)
class Step:
    """A command with its options, which runs in a process of its own.

    A file beside the first output, `<output>.json`, records the options, hashes of the inputs, and
    the time. A step is done when its command has succeeded with the same options and inputs.

    Attributes:
        name: its name in the file.
        command: a name in `COMMANDS`, or module:attribute.
        options: options by name, like {"train.steps": 100}, with those of the file in --config.
        words: the same options, as words of the command line.
        inputs: the files and folders that each option names, by the name of the option.
        outputs: the files and folders that the command writes.
    """

    name: str
    command: str
    options: Mapping[str, Any]
    words: Sequence[str]
    inputs: Mapping[str, Sequence[str]]
    outputs: Sequence[str]

    def reads(self, outputs: Sequence[str]) -> bool:
        """Whether an input is one of these outputs, is in one of them, or has one in it."""
        paths = [path for paths in self.inputs.values() for path in paths]
        return any(overlaps(path, outputs) for path in paths)

    def state(self, waits: bool = False) -> State:
        """How far the step is; `waits`: an earlier step has to write its inputs first.

        An `InputError` says that its outputs were made with other options or inputs.
        """
        if not self._has_begun():
            return State.TO_DO
        if waits:
            return State.TO_CHECK
        record = self._record()
        if not record.exists():
            return State.TO_RESUME  # the command itself knows what it can continue
        try:
            record.require_same()
        except InputError as error:
            outputs = ", ".join(self.outputs)
            raise InputError(f"step {self.name}: {error} Its outputs: {outputs}.") from error
        is_whole = record.outcome.get("succeeded") and all(map(os.path.exists, self.outputs))
        return State.DONE if is_whole else State.TO_RESUME

    @property
    def seconds(self) -> float:
        """The time of all starts of the command, in seconds."""
        return StartRecord(pathlib.Path(self.outputs[0])).outcome.get("seconds", 0.0)

    def scores(self) -> dict[str, float]:
        """The scores that the step has written to a JSON file; {} without one."""
        scores: dict[str, float] = {}
        for path in self.outputs:
            with contextlib.suppress(InputError, ValueError, AttributeError):
                content = json.loads(read_whole(path)) if path.endswith(".json") else {}
                scores |= {name: x for name, x in content.items() if isinstance(x, float)}
        return scores

    def run(self) -> int:
        """Runs the command, which continues what an earlier start has left; its exit status."""
        record, words, status, start = self._record(), list(self.words), 1, time.perf_counter()
        before = record.outcome.get("seconds", 0.0) if self._has_begun() else 0.0
        if self.command == "translate" and os.path.exists(f"{self.outputs[0]}.partial"):
            words.append("--resume=true")
        record.begin()
        try:
            status = run_command(self.command, *words)
        finally:
            seconds = round(before + time.perf_counter() - start, 1)
            has_output = self._has_begun()
            record.end(not has_output, {"seconds": seconds, "succeeded": status == 0})
        return status

    def _has_begun(self) -> bool:
        paths = (path + end for path in self.outputs for end in ("", ".partial"))
        return any(map(os.path.lexists, paths))

    def _record(self) -> StartRecord:
        record = StartRecord(pathlib.Path(self.outputs[0]))
        record.options = {"command": self.command, **self.options}
        record.contents = {name: _identity(paths) for name, paths in self.inputs.items()}
        return record


def overlaps(path: str, outputs: Sequence[str]) -> bool:
    """Whether a path is one of the outputs, or one is in the other."""
    parts, *others = (pathlib.Path(os.path.abspath(x)).parts for x in (path, *outputs))
    return any(parts[: len(other)] == other[: len(parts)] for other in others)


def _identity(paths: Sequence[str]) -> str:
    """A hash of the content of files, of the runs in folders, and of all files in other folders."""
    content = hashlib.sha256()
    for path in map(pathlib.Path, paths):
        if (path / "config.yaml").is_file():
            run = Run.load(path)
            facts = run.identities() | run.search_options()
            content.update(json.dumps(facts, default=str).encode())
            continue
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        for file in files if path.is_dir() else [path]:
            content.update(f"{file.relative_to(path)}\n".encode() if path.is_dir() else b"")
            for piece in read_pieces(file):
                content.update(piece)
    return content.hexdigest()
