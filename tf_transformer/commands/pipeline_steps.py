"""The steps of a pipeline: commands and their options in a YAML file, and what each depends on."""

import contextlib
import enum
import glob
import hashlib
import json
import os
import pathlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints

import yaml

from tf_transformer.commands.command_line import read_options
from tf_transformer.commands.main import command
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import located
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_distinct
from tf_transformer.files.reading import check_file, read_pieces, split_paths
from tf_transformer.files.start_record import StartRecord
from tf_transformer.machine.programs import run_command
from tf_transformer.run.run import Run

_WRITES_A_RUN = ("train", "distill", "import")


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
        return any(_overlaps(path, outputs) for path in paths)

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
            with contextlib.suppress(OSError, ValueError, AttributeError):
                content = json.loads(b"".join(read_pieces(path))) if path.endswith(".json") else {}
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


def read_steps(path: str) -> list[Step]:
    """Reads the steps of a file, and checks all options and inputs before a step runs."""
    check_file(path)
    steps: list[Step] = []
    for name, content in _read_yaml(path).items():
        if not (isinstance(content, dict) and len(content) == 1):
            raise InputError(
                f"{path}: step {name} must be a command with its options, like 'train: {{run_dir: "
                f"runs/{name}}}', got {content!r:.80}."
            )
        ((command_name, options),) = content.items()
        try:
            step = _step(name, command_name, options)
            _require_inputs(step, [output for earlier in steps for output in earlier.outputs])
        except (InputError, SystemExit) as error:
            reason = f": {error}" if isinstance(error, InputError) else " has the wrong option."
            raise InputError(f"{path}: step {name}{reason}") from error
        steps.append(step)
    require_distinct([output for step in steps for output in step.outputs])
    return steps


def _step(name: str, command_name: str, options: Any) -> Step:
    main = command(command_name)
    if not isinstance(options, dict):
        raise InputError(f"expected the options of {command_name}, got {options!r:.80}.")
    given = _flat(options)
    words = [f"--{option}={_word(value)}" for option, value in given.items()]
    values = read_options(main, words, f"tf-transformer {command_name}")
    in_file = _flat(_read_yaml(given.pop("config"))) if "config" in given else {}
    hints = get_type_hints(main, include_extras=True)
    inputs, outputs = dict[str, list[str]](), list[str]()
    for option, value in values.items():
        for full_name, paths in _paths(option, value, hints.get(option)):
            is_run = option == "run_dir" and command_name in _WRITES_A_RUN
            if paths and (is_run or re.fullmatch("to|(.*_)?output", option)):
                outputs.append(os.path.normpath(paths))
            elif paths:
                inputs[full_name] = _files(paths) or split_paths(paths)
    if not outputs:
        raise InputError(
            f"{command_name} writes nothing here, so nothing says that the step is done. Give an "
            "output, such as to, output or scores_output."
        )
    return Step(name, command_name, in_file | given, words, inputs, outputs)


def _require_inputs(step: Step, earlier: Sequence[str]) -> None:
    for option, paths in step.inputs.items():
        for path in paths:
            if not (os.path.exists(path) or _overlaps(path, earlier)):
                raise InputError(
                    f"{option}: {path} does not exist, and no earlier step writes it. Check the "
                    "path."
                )


class _Loader(yaml.SafeLoader):
    """Reads YAML; a key that stands twice is an error."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            place = f"{node.start_mark.name}, line {node.start_mark.line + 1}"
            raise InputError(f"{place}: {twice[0]} stands twice. Give each name once.")
        return node


def _read_yaml(path: str) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        with open(path, encoding="utf-8") as text:
            content = yaml.load(text, _Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if not isinstance(content, dict) or not content:
        raise InputError(f"{path}: expected names with values, got {content!r:.80}.")
    return content


def _flat(options: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Options in groups by their full names.

    Example:
        >>> _flat({"run_dir": "runs/x", "train": {"steps": 100}})
        {'run_dir': 'runs/x', 'train.steps': 100}
    """
    flat: dict[str, Any] = {}
    for name, value in options.items():
        is_group = isinstance(value, dict) and value
        flat |= _flat(value, f"{prefix}{name}.") if is_group else {f"{prefix}{name}": value}
    return flat


def _word(value: Any) -> str:
    """A value as a word of the command line, with the values of environment variables in it."""
    word = os.path.expandvars(value if isinstance(value, str) else json.dumps(value, default=str))
    if missing := re.search(r"\$(\w+|\{\w+\})", word):
        raise InputError(f"the environment variable {missing[0]} is not set. Set it first.")
    return word


def _paths(name: str, value: Any, hint: Any) -> Iterator[tuple[str, str]]:
    """The options in a value that name files or folders, with their values."""
    if hint == LocalPath:
        yield name, value
    elif isinstance(value, DataConfig):
        hints = get_type_hints(DataConfig, include_extras=True)
        for field in ("corpora", "valid_corpora", "tokenizer"):
            for full_name, paths in _paths(f"{name}.{field}", getattr(value, field), hints[field]):
                yield full_name, _in_data_folder(paths, value.folder)
    elif isinstance(value, tuple) and get_args(hint):
        for number, item in enumerate(value, 1):
            yield from _paths(f"{name}.{number}", item, get_args(hint)[0])
    elif is_dataclass(value):
        hints = get_type_hints(type(value), include_extras=True)
        for option in fields(value):
            item = getattr(value, option.name)
            yield from _paths(f"{name}.{option.name}", item, hints[option.name])


def _in_data_folder(paths: str, folder: str) -> str:
    """The paths of text in the data folder, unless a step has yet to write it somewhere else."""
    places = [located(path, folder) for path in split_paths(paths)]
    return ",".join(places) if folder or all(map(_files, places)) else paths


def _files(paths: str) -> list[str]:
    """The files and folders of an option: a path or a pattern, or several with commas between."""
    existing = ([path] if os.path.exists(path) else glob.glob(path) for path in split_paths(paths))
    return [path for paths in existing for path in sorted(paths)]


def _overlaps(path: str, outputs: Sequence[str]) -> bool:
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
