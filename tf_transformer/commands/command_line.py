"""Reads the options of a command and reports its errors."""

import argparse
import dataclasses
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

import docstring_parser  # jsonargparse[signatures] needs it, too
import yaml
from jsonargparse import ArgumentError, ArgumentParser, Namespace, set_loader

from tf_transformer.commands.option_errors import as_typed, explain
from tf_transformer.commands.standard_streams import standard_streams, without_notices
from tf_transformer.config import PRESETS, Config, DecodeConfig, ModelConfig
from tf_transformer.config.data import COMPLETED, ShortForms
from tf_transformer.config.imported import TRAITS, with_record
from tf_transformer.config.option import options_in, select
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import (
    LocalPath,
    PathOrAddress,
    local_path,
    with_home,
    with_local_paths,
)
from tf_transformer.machine.gpus import explain_full, share_gpus
from tf_transformer.machine.heap import keep_freed_memory
from tf_transformer.machine.keras_settings import for_commands
from tf_transformer.machine.limits import limit_threads
from tf_transformer.registry import OPTIONS, options_of
from tf_transformer.run.earlier import present_options, task_named
from tf_transformer.run.folder import RunFolder, members, require_groups

DEFAULT_TASK = "translation"
Main = Callable[..., None]  # a command, whose parameters are its options
_OTHER_GROUPS = {"model", "train", "decode", "task"}
GIVEN = "given"  # a parameter that is no option: the names of the options that were given


class _Parser(ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message or "")  # argparse ignores errors such as a full disk


def run(main: Main, arguments: Sequence[str] | None = None, program: str | None = None) -> None:
    """Calls `main` with the options of the command line; see `parser_of`.

    Bad options exit with status 2, an `InputError` with status 1. Neither prints a traceback.

    Args:
        main: the command.
        arguments: the words of the command line; None: `sys.argv`.
        program: name of the program in usage and errors; None: the name in `sys.argv`.
    """
    sys.path.append(os.getcwd())  # may hold the module of --task module:attribute
    with standard_streams():
        options = read_options(main, sys.argv[1:] if arguments is None else arguments, program)
        _use_machine(main)
        with without_notices():
            try:
                for_commands()
                main(*options.pop(_Command(main).repeated, ()), **options)
            except InputError as error:
                sys.exit(f"error: {as_typed(str(error), types_of(main))}")
            except KeyboardInterrupt:
                sys.exit("interrupted")
            except Exception as error:
                if message := explain_full(error):
                    sys.exit(f"error: {message}")
                raise


def _use_machine(main: Main) -> None:
    """Settings of this process and its children, before TensorFlow is imported."""
    keep_freed_memory()
    limit_threads()
    if not _Command(main).has_model:  # a training run may take a whole GPU
        share_gpus()


class _Command:
    """What the signature of a command says about its options."""

    def __init__(self, main: Main):
        self.main = main
        self.hints = get_type_hints(main, include_extras=True)
        parameters = inspect.signature(main).parameters
        names = {parameter.kind: parameter.name for parameter in parameters.values()}
        self.repeated = names.get(inspect.Parameter.VAR_POSITIONAL, "")  # of *name
        self.uses_run = inspect.Parameter.VAR_KEYWORD in names  # **decode_options of a run
        self.takes_task = "task" in parameters  # --task, the name of a task
        self.has_task = self.takes_task or self.uses_run  # options of a task
        self.has_model = self.hints.get("model") is ModelConfig  # and so presets
        self.takes_input = "input" in parameters
        # Whether it reads the data options alone, also in the file of a training run.
        self.reads_data = "data" in parameters and not self.has_model
        self.wants_given = GIVEN in parameters


def read_options(main: Main, words: Sequence[str], program: str | None = None) -> dict[str, Any]:
    """The values of a command's options; exits with status 2 for a wrong option.

    An option on the command line overrides an option in a file, in any order. A single option
    overrides a preset of the model. If training resumes a run, the run's configuration is the
    first file. A command with the parameter `given` gets the names of the options that a file or
    the command line has, like {"model.d_model"}. The arguments are those of `run`.
    """
    parser: ArgumentParser = _Parser(prog=program)
    command, task, files = _Command(main), DEFAULT_TASK, list[str]()
    try:
        words, given_files = _without(words, "--config")
        given_files = [local_path(file, "--config") for file in given_files]
        words, named = _without(words, "--task")
        words = _with_preset(words) if command.has_model else words
        if words and command.takes_input and not words[0].startswith("-"):
            words = ["--input", *words]  # the first word may be the input
        selected = _selected_task(command, words, given_files, named)
        if selected not in OPTIONS:
            for_commands()  # the task's module imports Keras
        parser, task, files = parser_of(main, program, selected), selected, given_files
        words = [word for file in files for word in ("--config", file)] + words
        options = parser.parse_args(words)
        if not files and (stored := _stored_config(options, words)):
            files = [stored]
            words = ["--config", stored, *words]
            options = parser.parse_args(words)
        _override_corpora(options, words)
        names = parser.parse_args(words, defaults=False).keys()
        values = _values(command, parser, options)
    except (ArgumentError, InputError) as error:
        explained = _explain(error, command, parser, files, task)
        print(f"error: {explained}\nSee {parser.prog} --help.", file=sys.stderr)
        sys.exit(2)
    values.pop("config")
    if command.wants_given:
        values[GIVEN] = frozenset(name for name in names if not name.endswith("__path__"))
    of_task = values.pop("task", None)
    if command.uses_run:
        given = {name: x for name, x in dataclasses.asdict(of_task).items() if x is not None}
        values |= {"task_options": given} if given else {}
        values |= {"task": named[-1]} if named else {}
    elif command.takes_task:
        values["task"] = dataclasses.replace(of_task, name=task)
    return values


def _override_corpora(options: Namespace, words: Sequence[str]) -> None:
    """Lets a short form on the command line override the lists of corpora of a file."""
    given = {word.partition("=")[0] for word in words}
    kept = [name for name in ("corpora", "valid_corpora") if f"--data.{name}" not in given]
    for name, rules, _ in options_in(ShortForms):
        if f"--data.{name}" in given and rules.short_for in kept:
            options.data[rules.short_for] = ()
        elif f"--data.{name}" in given and name in COMPLETED:
            for corpus in (corpus for listed in kept for corpus in options.data.get(listed, ())):
                corpus.pop(COMPLETED[name], None)


def _values(command: _Command, parser: ArgumentParser, options: Namespace) -> dict[str, Any]:
    """The values of parsed options: groups as dataclasses, and paths without `~`."""
    require_groups(vars(options), command.main)
    if "data" in options:
        for name, hint in get_type_hints(ShortForms, include_extras=True).items():
            if name in options.data:  # none is if a file has `data: null`
                options.data[name] = with_local_paths(options.data[name], hint, f"data.{name}")
    values = parser.instantiate(options).as_dict()
    for name, hint in command.hints.items():
        if name == command.repeated:
            values[name] = [with_local_paths(value, hint, name) for value in values[name]]
        elif name in values:
            option = name if dataclasses.is_dataclass(values[name]) else f"--{name}"
            values[name] = with_local_paths(values[name], hint, option)
    return values


def parser_of(main: Main, program: str | None = None, task: str = DEFAULT_TASK) -> ArgumentParser:
    """The parser of a command. The parameters of `main` give names, types and help texts.

    A dataclass parameter `model` gives --model.d_model and so on. The parameter `task` gives the
    options of the task. **decode_options give an option for each field of `DecodeConfig`, like
    --beam_size, and for each option of the task, like --task.grammar; their default is None.
    *run_dirs takes one or more words without an option. --config reads options from a YAML file.
    A wrong option raises `ArgumentError`. `run` describes `program`.
    """
    command = _Command(main)

    def load(text: str) -> Any:
        # The rules of `RunFolder.save_config`. jsonargparse's own loader reads 1e3 as a number.
        value = yaml.safe_load(text)
        if not isinstance(value, dict):
            return value
        value = present_options(value, task, trains=command.has_model)
        if command.reads_data:
            return {name: group for name, group in value.items() if name not in _OTHER_GROUPS}
        return _with_preset_options(value) if command.has_model else value

    set_loader("yaml", load, exceptions=(yaml.YAMLError,))
    doc = inspect.getdoc(main) or ""
    helps = {item.arg_name: item.description for item in docstring_parser.parse(doc).params}
    summary, *_ = doc.split("\n\n")
    parser = _Parser(prog=program, description=summary, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", action="config", help="YAML file of options.")
    if name := command.repeated:
        metavar = name.upper().removesuffix("S")
        count = "*" if command.reads_data else "+"  # the data options may name files instead
        parser.add_argument(name, nargs=count, metavar=metavar, help=helps.get(name) or "")
    parser.add_function_arguments(_without_stars(main), as_group=False, sub_configs=True)
    if command.uses_run:
        parser.add_class_arguments(_optional(DecodeConfig, "the search"))
    if command.has_task:
        options = options_of(task)
        options = _optional(options, "the task") if command.uses_run else options
        parser.add_class_arguments(options, "task", skip={"name"})
    types = types_of(main, task)
    derived = select(Config, lambda rules: rules.derived).items()
    parser.set_defaults({name: value for name, value in derived if name in types})
    fitting = select(Config, lambda rules: rules.fits_text) if command.wants_given else {}
    for action in parser._actions:  # argparse has no public list of them
        if "InitVar" in str(vars(action).get("_typehint")):  # jsonargparse does not check these
            vars(action)["_typehint"] = types[action.dest]
        if vars(action).get("_typehint") in (LocalPath, PathOrAddress):
            vars(action)["_typehint"] = str  # what the help says
        if types.get(action.dest) is bool:  # --resume alone means --resume true
            action.nargs, action.const = "?", True
        if action.dest == "task":
            action.metavar, action.help = "NAME", helps.get("task") or argparse.SUPPRESS
        if action.dest == "model" and command.has_model:
            action.metavar, action.help = "NAME", f"A preset: {', '.join(PRESETS)}."
        if action.dest in fitting:
            action.help = f"{action.help} Not given: a value that fits the size of the text."
    return parser


def types_of(main: Main, task: str = DEFAULT_TASK) -> dict[str, Any]:
    """The types of a command's options by name, like {"train.steps": int}."""
    command = _Command(main)
    types: dict[str, Any] = {"config": str, "help": bool} | _types_in(main)
    for name in (command.repeated, GIVEN, "decode_options", "return"):
        types.pop(name, None)
    if command.has_task:
        hints = get_type_hints(options_of(task))
        types |= {f"task.{name}": hint for name, hint in hints.items() if name != "name"}
    return types | (get_type_hints(DecodeConfig) if command.uses_run else {})


def _types_in(owner: Callable, prefix: str = "") -> dict[str, Any]:
    """The types of the options of a command or a group, and of the groups in it."""
    types: dict[str, Any] = {}
    for name, hint in get_type_hints(owner).items():
        if isinstance(hint, dataclasses.InitVar):
            hint = getattr(hint.type, "__origin__", hint.type)  # without annotations
        types[prefix + name] = hint
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            types |= _types_in(hint, f"{prefix}{name}.")
    return types


def _without_stars(main: Main) -> Callable[..., None]:
    """A function with the parameters of `main` except *names, **decode_options and the task.

    For **decode_options, jsonargparse would import everything that `main` calls, with TensorFlow.
    """

    def function() -> None: ...

    signature = inspect.signature(main, eval_str=True)
    parameters = signature.parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    named = [parameter for parameter in named if parameter.name not in ("task", GIVEN)]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    function.__doc__, function.__module__ = main.__doc__, main.__module__
    return function


def _selected_task(
    command: _Command, words: Sequence[str], files: Sequence[str], named: Sequence[str]
) -> str:
    """The task whose options a command has: the last --task, or the task of a file or of the run.

    A training run has the task of the run in `train.init_from`, unless a file or --task names one.
    """
    if named and not command.takes_task:
        raise InputError("--task has no meaning here: the run determines the task. Leave it out.")
    given = _without(words, "--run_dir")[1] if command.has_task else []
    runs = [RunFolder(members(local_path(run_dir, "--run_dir"))[0]) for run_dir in given]
    in_files, of_origins = list(map(_content, files)), []
    if not command.uses_run:  # training: the run's file counts once it has started
        runs = [run for run in runs if run.has_checkpoint and not files]
        trains = [file["train"] for file in in_files if isinstance(file.get("train"), Mapping)]
        origins = [train["init_from"] for train in trains if "init_from" in train]
        origins += _without(words, "--train.init_from")[1]
        of_origins = [f"{with_home(str(origin))}/config.yaml" for origin in origins]
    stored = list(map(_content, [*of_origins, *(str(run.config) for run in runs)]))
    tasks = [DEFAULT_TASK, *map(task_named, [*stored, *in_files]), *named]
    return [task for task in tasks if task][-1]


def _content(file: str) -> Mapping[str, Any]:
    """The options in a YAML file; {} if it cannot be read."""
    try:
        with open(file, encoding="utf-8") as text:
            options = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return options if isinstance(options, Mapping) else {}


def _with_preset(words: Sequence[str]) -> list[str]:
    """The words, after the options of the preset that --model names, so that all options count."""
    words = [re.sub(r"^--model\.preset(?==|$)", "--model", word) for word in words]
    trait = rf"^--model\.(?=({'|'.join(TRAITS)})(=|$))"
    words = [re.sub(trait, "--model.imported.", word) for word in words]
    words, values = _without(words, "--model")
    named, groups = list[str](), list[str]()
    for value in map(with_home, values):
        is_group = value.startswith("{") or os.path.isfile(value)  # options, or a file of them
        (groups if is_group and value not in PRESETS else named).append(value)
    options = ModelConfig.preset_options(named[-1]) if named else {}
    first = [f"--model.{name}={value}" for name, value in options.items()]
    return first + [f"--model={value}" for value in groups] + words


def _with_preset_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a file, or of the group `model`, with those of the preset that it names."""
    model = options.get("model")
    if isinstance(model, str):
        return {**options, "model": ModelConfig.preset_options(model)}
    if isinstance(model, Mapping):
        return {**options, "model": _with_preset_options(model)}
    own = with_record({name: value for name, value in options.items() if name != "preset"})
    return ModelConfig.preset_options(options["preset"]) | own if "preset" in options else own


def _without(words: Sequence[str], option: str) -> tuple[list[str], list[str]]:
    """The words without an option, and the values of the option."""
    values, rest, remaining = [], [], iter(words)
    for word in remaining:
        name, equals, value = word.partition("=")
        if name == option and (value := value if equals else next(remaining, "")):
            values.append(value)
        else:
            rest.append(word)
    return rest, values


def _stored_config(options: Namespace, words: Sequence[str]) -> str:
    """The configuration file of the run that training resumes; "" for a new run.

    A training run that was killed before its first checkpoint begins again with --run_dir alone.
    """
    if "train" not in options:
        return ""
    run = RunFolder(options.run_dir)
    begins_again = run.start_mark and not _without(words, "--run_dir")[0]
    return str(run.config) if (run.has_checkpoint or begins_again) and run.config.is_file() else ""


def _explain(
    error: Exception, command: _Command, parser: ArgumentParser, files: Sequence[str], task: str
) -> str:
    """The error in a user's words, with the name of the YAML file that causes it."""
    types = types_of(command.main, task)
    needed = [word for a in parser._actions if a.required for word in (*a.option_strings[:1], "x")]
    for file in files:
        try:
            _values(command, parser, parser.parse_args(["--config", file, *needed]))
        except (ArgumentError, InputError) as same:
            if str(same) == str(error) and os.path.isfile(file):
                return explain(str(error), types, file)
    explained = explain(str(error), types)
    return as_typed(explained, types) if isinstance(error, InputError) else explained


def _optional(config: type, of: str) -> type:
    """A dataclass with the fields and the documentation of `config`; all defaults are None."""
    _, _, rest = (inspect.getdoc(config) or "").partition("\n")
    return dataclasses.make_dataclass(
        f"Optional{config.__name__}",
        [(name, hint | None, None) for name, hint in get_type_hints(config).items()],
        namespace={"__doc__": f"Options of {of}; null: the value in config.yaml.\n{rest}"},
    )
