"""Writes docs/reference/options.md, the reference of all options: python -m docs.options.

The text comes from the docstrings of the commands and of the configuration's dataclasses. `--help`
prints the same text.
"""

import dataclasses
import inspect
import json
import pathlib
import types
from collections.abc import Callable, Iterable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import docstring_parser  # jsonargparse[signatures] needs it, too

from tf_transformer import config
from tf_transformer.commands import main
from tf_transformer.commands.command_line import GIVEN
from tf_transformer.config.data import ShortForms
from tf_transformer.config.option import rules_of
from tf_transformer.registry import OPTIONS, options_of

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "options.md"
INTRODUCTION = """\
# Options

<!-- Written by `python -m docs.options` from the docstrings of the code. Do not edit. -->

This page lists all options. Give an option on the command line (`--model.d_model 256`) or in a
YAML file (`--config FILE`). The command line overrides the file. If an option is given twice, the
last value counts. An unknown option is an error. `config.yaml` in the run folder has the value of
every option. In options that name files and folders, `~` is the home folder, and addresses such as
`gs://bucket/mine` are errors. `tf-transformer train` takes the options of `python train.py`; so do
the other commands.
"""

TASKS = """\
## Options of tasks

Each task has options of its own, in the group `task`. `--task NAME` selects a task, and
`--task NAME --help` shows its options. The other commands take the options of the run's task. In a
YAML file, `task: parsing` is short for `task: {name: parsing}`.
"""

# The parameters of a command that most users need; the page folds the others. A command that is not
# here has no rare ones.
COMMON = {
    "evaluate": {"run_dir", "source", "reference", "hypotheses", "metric", "output"},
    "translate": {"run_dir", "input", "output", "n_best_output", "attention_output"},
    "serve": {"run_dir", "saved_model", "server", "model", "host", "port", "api_keys"},
}


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name in main.COMMANDS:
        function = main.command(name)
        parts.append(_command(name, function))
    for name, hint in get_type_hints(config.Config).items():
        if name != "task":
            parts.append(_group(name, hint, f"{name.capitalize()} options"))
        if name == "model":
            traits = "Traits of imported models"
            parts.append(_group("model.imported", config.ImportedConfig, traits))
        if name == "data":
            parts.append(_group(name, ShortForms, "Short forms of corpora", described_by=hint))
    parts.append(_group("data.augment", config.AugmentConfig, "Augmentation options"))
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
            group = "corpus" if hint is config.Corpus else parameter.name
            groups.append(f"[`--{parameter.name}.*`](#{group}-options)")
        else:
            shown = "required" if default is inspect.Parameter.empty else _default(default)
            several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            if several and "data" in hints:  # they are short for data options
                shown = "none"
            option = (
                f"{parameter.name.upper().removesuffix('S')} ..."
                if several
                else f"--{parameter.name}"
            )
            rows.append(_row(option, hint, shown, texts[parameter.name]))
    also = f"\nIt also takes {', '.join(groups)}.\n" if groups else ""
    return (
        f"## {_program(name)}\n\n{_summary(doc)}\n\n{_tables(rows, COMMON.get(name, set()))}{also}"
    )


def _program(name: str) -> str:
    """How the pages start a command: by its script, where there is one."""
    if (ROOT / f"{name}.py").is_file():
        return f"python {name}.py"
    return f"python -m {name}" if (ROOT / name).is_dir() else f"tf-transformer {name}"


def _group(name: str, cls: Any, title: str, described_by: Any = None) -> str:
    """The section of one of the configuration's dataclasses.

    Args:
        name: the group of its options.
        cls: the dataclass.
        title: the heading.
        described_by: the dataclass whose docstring describes the fields; None: `cls`.
    """
    doc = docstring_parser.parse(inspect.getdoc(cls) or "")
    described = docstring_parser.parse(inspect.getdoc(described_by or cls) or "")
    texts = {param.arg_name: param.description or "" for param in described.params}
    hints = get_type_hints(cls)
    options = dataclasses.fields(cls)
    rows = [
        _row(f"--{name}.{option.name}", hints[option.name], _of_field(option), texts[option.name])
        for option in options
        if f"{name}.{option.name}" != "task.name"
    ]
    common = {option.name for option in options if rules_of(option).common}
    tables = f"\n{_tables(rows, common)}" if rows else ""
    return f"## {title}\n\n{_summary(doc)}\n{tables}"


def _summary(doc: docstring_parser.Docstring) -> str:
    return "\n\n".join(filter(None, [doc.short_description, doc.long_description]))


def _tables(rows: list[str], common: set[str]) -> str:
    """The table of the common options, and the folded table of the rare ones.

    Raises:
        KeyError: when a common option does not exist.
    """
    if not common:
        return _table(rows)
    by_name = {row.split("`")[1].rpartition(".")[2].lstrip("-"): row for row in rows}
    if unknown := common - by_name.keys():
        raise KeyError(f"COMMON names options that do not exist: {', '.join(sorted(unknown))}")
    rare = [row for name, row in by_name.items() if name not in common]
    return (
        _table(row for name, row in by_name.items() if name in common)
        + f"\n<details markdown>\n<summary>{len(rare)} more options</summary>\n\n"
        + f"{_table(rare)}\n</details>\n"
    )


def _table(rows: Iterable[str]) -> str:
    return "".join(["| option | values | default | meaning |\n|---|---|---|---|\n", *rows])


def _row(option: str, hint: Any, default: str, text: str) -> str:
    cells = (f"`{option}`", _values(hint), default, _as_cell(text))
    return f"| {' | '.join(cells)} |\n"


def _of_field(field: dataclasses.Field) -> str:
    """The default of an option, which training may choose by the size of its text."""
    if field.default is dataclasses.MISSING:  # a group of options
        return "empty"
    may_fit = rules_of(field).fits_text
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
    if dataclasses.is_dataclass(hint):
        section = (
            "augmentation-options" if hint is config.AugmentConfig else "traits-of-imported-models"
        )
        return f"group of [options](#{section})"
    words = {int: "integer", float: "number", bool: "`true`, `false`", str: "text"}
    return (words | {type(None): "`null`"})[hint]


def _as_cell(text: str) -> str:
    """A text in a table; what looks like a tag of HTML, such as <name>, is text."""
    spans = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(spans[i] if i % 2 else spans[i].replace("<", "&lt;") for i in range(len(spans)))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
