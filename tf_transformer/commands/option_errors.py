"""Messages for wrong options, with the option as typed and the most similar option."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, get_origin

import yaml

from tf_transformer.config.option import in_words
from tf_transformer.run.earlier import MOVED

# Earlier versions had the options of one task among the options of all tasks.
_NEW_NAMES = {f"{group}.{name}": f"task.{name}" for group, names in MOVED.items() for name in names}
_NEW_NAMES |= {name: f"task.{name}" for name in (*MOVED["decode"], "label_separator")}
_NEW_NAMES |= {name: f"task.{name}" for name in ("lowercase", "normalize", "resamples")}
_NEW_NAMES |= {"tokenize": "task.bleu_tokenize", "ter": "metric ter"}


def explain(message: str, options: Mapping[str, Any], file: str = "") -> str:
    """A message of jsonargparse in a user's words.

    `options` has their types by name. `file` is the YAML file with the wrong option, if any.
    """
    dashes = "" if file else "--"
    if words := re.match(r"unrecognized arguments: (\S+)", message):
        return _unknown(words[1].partition("=")[0], {f"--{name}" for name in options})
    if item := re.match(r'Parser key "([\w.]+)":.*Option \'([^\']+)\' is not acc', message, re.S):
        name, wrong_name = item.groups()
        text = f"{dashes}{name} must be {in_words(options[name])}; a corpus has no {wrong_name!r}."
    elif group := re.search(r'Parser key "([\w.]+)": Unable to load config "(.*)"', message):
        name, value = group.groups()
        option = next((known for known in options if known.startswith(f"{name}.")), name)
        text = f"{dashes}{name} is a group of options, such as {dashes}{option}; got {value!r}."
    elif named := re.search(r"(?:Group '([\w.]+)' does not accept o|O)ption '([\w.]+)'", message):
        unknown = ".".join(filter(None, named.groups()))
        text = _unknown(dashes + unknown, {dashes + name for name in options})
    elif required := re.search(r"arguments are required: (.*)", message):
        names = required[1].split(", ")
        return f"expected {', '.join(f'--{name}' if name in options else name for name in names)}."
    elif lacking := re.match(r"argument (\S+): expected one argument", message):
        return f"{lacking[1]} needs a value."
    elif config := re.match(r"Unexpected config: (.*)", message):
        text = f"expected options like 'train: {{steps: 100}}', got {config[1]!r}."
    elif wrong := re.match(r'Parser key "([\w.]+)":.*(?:Got|Given) value: (.*)', message, re.S):
        name, value = wrong[1], re.split(r"\n +(?=Subclass types|\.\.\.with)", wrong[2])[0]
        text = f"{dashes}{name} must be {in_words(options[name])}, got {value!r}."
        is_list = get_origin(options[name]) is tuple
        if file and (is_list or options[name] is str):
            text += _quotes(file, name, value)
        elif is_list:
            text += " Items like no, null and 1 need quotes: '[\"no\"]'."
    else:
        text = re.sub(r'^Parser key "([\w.]+)":', rf"{dashes}\1:", message)
    return f"{file}: {text}" if file else text


def _quotes(file: str, name: str, value: str) -> str:
    """Advice for a value in a YAML file that YAML reads as something other than text."""
    with open(file, encoding="utf-8") as text:
        node: Any = yaml.compose(text, yaml.SafeLoader)
    for part in name.split("."):
        node = {key.value: value for key, value in node.value}[part]
    for item in _scalars(node):
        read = yaml.safe_load(item)
        if not isinstance(read, str) and str(read) == value:
            return f" Write '{item}' in quotes: without them, YAML does not read it as text."
    return ""


def _scalars(node: Any) -> list[str]:
    """The plain scalars in a node of YAML."""
    if isinstance(node.value, str):
        return [node.value] if node.style is None else []
    parts = [x for item in node.value for x in (item if isinstance(item, tuple) else [item])]
    return [scalar for part in parts for scalar in _scalars(part)]


def as_typed(message: str, options: Mapping[str, Any]) -> str:
    """An error message of a configuration, with options as the command line has them.

    `decode.beam_size` becomes --decode.beam_size, or --beam_size if the command has this option.
    A message about a YAML file keeps the names of the file.
    """
    if re.match(r"\S+\.ya?ml: ", message):
        return message

    def option(name: re.Match[str]) -> str:
        typed = [known for known in (name[0], name[0].removeprefix("decode.")) if known in options]
        if name[0].startswith("task."):  # an option of any task
            return f"--{name[0]}"
        return f"--{typed[0]}" if typed else name[0]

    return re.sub(r"(?<![\w./-])(?:model|data|train|decode|task)\.\w+", option, message)


def _unknown(option: str, known: set[str]) -> str:
    near = difflib.get_close_matches(option, known, n=1)
    reads_input = "--input" in known
    of_file = "." in option and (near or not reads_input)  # a name in a YAML file
    if not (option.startswith("--") or f"--{option}" in known or of_file):
        first = ", and the input stands before them" if reads_input else ""
        return f"unexpected {option!r}; options start with --{first}."
    if new := _NEW_NAMES.get(option.removeprefix("--")):
        return f"{option} has become {'--' * option.startswith('--')}{new}."
    return f"unknown option {option}" + (f"; did you mean {near[0]}?" if near else ".")
