"""Reads a file of steps, and checks the options and inputs of all of them; see pipeline_step.py."""

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import yaml

from tf_transformer.commands.command_line import read_options
from tf_transformer.commands.main import command
from tf_transformer.commands.pipeline_step import Step, overlaps
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import located
from tf_transformer.data.rules import is_file
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_distinct
from tf_transformer.files.reading import read_whole, split_paths

_WRITES_A_RUN = ("train", "distill", "import")


def read_steps(path: str) -> list[Step]:
    """Reads the steps of a file, and checks all options and inputs before a step runs."""
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
    in_file = _flat(_read_yaml(_word(given.pop("config")))) if "config" in given else {}
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
            if not (os.path.exists(path) or overlaps(path, earlier)):
                raise InputError(
                    f"{option}: {path} does not exist, and no earlier step writes it. Check the "
                    "path, or set TF_TRANSFORMER_DATA to the folder of the text."
                )


class _Loader(yaml.SafeLoader):
    """Reads YAML; a key that stands twice is an error."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            line = node.start_mark.line + 1
            raise InputError(f"line {line}: {twice[0]} stands twice. Give each name once.")
        return node


def _read_yaml(path: str) -> dict[str, Any]:
    """The mapping in a YAML file."""
    text = read_whole(path)
    try:
        content = yaml.load(text, _Loader)
    except (InputError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: {error}") from error
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
        yield f"{name}.prepared", value.prepared
        filters = ",".join(filter(is_file, value.clean))
        yield f"{name}.clean", filters and _in_data_folder(filters, value.folder)
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
