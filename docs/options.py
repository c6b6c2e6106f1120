"""Writes docs/options.md, the reference of all options: python -m docs.options.

The text comes from the docstrings of the commands and of the configuration's dataclasses. `--help`
prints the same text.
"""

import dataclasses
import importlib
import inspect
import json
import pathlib
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import docstring_parser  # jsonargparse[signatures] needs it, too

from tf_transformer import config
from tf_transformer.commands import main
from tf_transformer.commands.command_line import GIVEN
from tf_transformer.registry import OPTIONS, options_of
from tf_transformer.training.defaults import OPTIONS as FITTING

PROGRAMS = {
    "export": "python -m export",
    "plot": "tf-transformer plot",
    "demo": "tf-transformer demo",
}
PAGE = pathlib.Path(__file__).with_name("options.md")
INTRODUCTION = """\
# Options

<!-- Written by `python -m docs.options` from the docstrings of the code. Do not edit. -->

Options are given on the command line (`--model.d_model 256`), in a YAML file (`--config FILE`), or
both; the command line counts more. If an option is given twice, the last value counts. An unknown
option is an error. The folder of a run holds its complete configuration as `config.yaml`.
`tf-transformer train` is the same command as `python train.py`; so are `tf-transformer evaluate`,
`translate` and `export`.
"""

TASKS = """\
## Options of tasks

Each task has options of its own, in the group `task`; another task does not know them.
`--task NAME` selects the task, and `--help` beside it shows its options. A
command with a run takes the options of the run's task. In a YAML file, `task: parsing` is short for
`task: {name: parsing}`, a group that holds the options, too.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name in main.COMMANDS:
        function = importlib.import_module(f"tf_transformer.commands.{name}").main
        parts.append(_command(name, function))
    for name, hint in get_type_hints(config.Config).items():
        if name != "task":
            parts.append(_group(name, hint, f"{name.capitalize()} options"))
    parts.append(_group("corpus", config.Corpus, "Corpus options"))
    parts.append(TASKS)
    for task in OPTIONS:
        parts.append(_group("task", options_of(task), f"Task {task}"))
    return "\n".join(parts)


def _command(name: str, function: Callable[..., None]) -> str:
    """A command's section: its own options, and links to the groups of options that it takes."""
    doc = docstring_parser.parse(inspect.getdoc(function) or "")
    texts = {param.arg_name: param.description or "" for param in doc.params}
    hints = get_type_hints(function)
    rows, groups = [], []
    for parameter in inspect.signature(function).parameters.values():
        hint, default = hints[parameter.name], parameter.default
        if parameter.name == GIVEN:
            continue  # no option
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            groups.append("the [decode options](#decode-options) without `decode.`")
            groups.append("the [options of the run's task](#options-of-tasks)")
        elif parameter.name == "task":
            rows.append(_row("--task", str, _default(default), texts["task"]))
        elif dataclasses.is_dataclass(hint):
            groups.append(f"[`--{parameter.name}.*`](#{parameter.name}-options)")
        else:
            shown = "required" if default is inspect.Parameter.empty else _default(default)
            several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            option = (
                f"{parameter.name.upper().removesuffix('S')} ..."
                if several
                else f"--{parameter.name}"
            )
            rows.append(_row(option, hint, shown, texts[parameter.name]))
    program = PROGRAMS.get(name, f"python {name}.py")
    also = f"\nIt also takes {', '.join(groups)}.\n" if groups else ""
    return f"## {program}\n\n{_summary(doc)}\n\n{_table(rows)}{also}"


def _group(name: str, cls: Any, title: str) -> str:
    """The section of one of the configuration's dataclasses."""
    doc = docstring_parser.parse(inspect.getdoc(cls) or "")
    texts = {param.arg_name: param.description or "" for param in doc.params}
    hints = get_type_hints(cls)
    rows = [
        _row(f"--{name}.{each.name}", hints[each.name], _of_field(name, each), texts[each.name])
        for each in dataclasses.fields(cls)
        if f"{name}.{each.name}" != "task.name"
    ]
    return f"## {title}\n\n{_summary(doc)}\n" + (f"\n{_table(rows)}" if rows else "")


def _summary(doc: docstring_parser.Docstring) -> str:
    return "\n\n".join(filter(None, [doc.short_description, doc.long_description]))


def _table(rows: list[str]) -> str:
    return "".join(["| option | values | default | meaning |\n|---|---|---|---|\n", *rows])


def _row(option: str, hint: Any, default: str, text: str) -> str:
    cells = (f"`{option}`", _values(hint), default, " ".join(text.split()).replace("|", "\\|"))
    return f"| {' | '.join(cells)} |\n"


def _of_field(group: str, field: dataclasses.Field) -> str:
    """The default of an option, which training may choose by the size of its text."""
    may_fit = f"{group}.{field.name}" in FITTING
    return _default(field.default) + ", or [fitting the text](#python-trainpy)" * may_fit


def _default(value: Any) -> str:
    if value in ("", ()):
        return "empty"
    return f"`{json.dumps(value) if value is None or isinstance(value, bool) else value}`"


def _values(hint: Any) -> str:
    """The values of a type, in words."""
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return ", ".join(map(_values, get_args(hint)))
    if get_origin(hint) is tuple:
        is_corpora = dataclasses.is_dataclass(get_args(hint)[0])
        return "list of [corpora](#corpus-options)" if is_corpora else "list of text"
    words = {int: "integer", float: "number", bool: "`true`, `false`", str: "text"}
    return (words | {type(None): "`null`"})[hint]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
