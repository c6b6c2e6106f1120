"""Reads the options of a command and reports its errors."""

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import docstring_parser  # jsonargparse[signatures] needs it, too
import jsonargparse
import yaml

from tf_transformer.commands.option_errors import as_typed, explain
from tf_transformer.commands.standard_streams import standard_streams
from tf_transformer.commands.stderr import without_notices
from tf_transformer.config import DERIVED, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.machine.heap import keep_freed_memory
from tf_transformer.machine.keras_settings import for_commands
from tf_transformer.run.folder import RunFolder, require_groups


class _Parser(jsonargparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message or "")  # argparse ignores errors, as of a full disk


def run(
    main: Callable[..., None], arguments: Sequence[str] | None = None, program: str | None = None
) -> None:
    """Calls `main` with the options of the command line; see `parser_of`.

    Bad options exit with status 2, an `InputError` with status 1, both without a traceback.

    Args:
        main: the command.
        arguments: the command line's words; None: those of `sys.argv`.
        program: name of the program in usage and errors; None: that of `sys.argv`.
    """
    sys.path.append(os.getcwd())  # where --task module:attribute may be
    with standard_streams():
        options = read_options(main, sys.argv[1:] if arguments is None else arguments, program)
        keep_freed_memory()  # before TensorFlow starts threads
        with without_notices():
            try:
                for_commands()
                main(*options.pop(_repeated(main), ()), **options)
            except InputError as error:
                sys.exit(f"error: {as_typed(str(error), types_of(main))}")
            except KeyboardInterrupt:
                sys.exit("interrupted")


def read_options(
    main: Callable[..., None], words: Sequence[str], program: str | None = None
) -> dict[str, Any]:
    """The values of a command's options; exits with status 2 when there is an error in them.

    The command line counts more than files, wherever --config stands. For a command that takes a
    run's configuration, the configuration of a run that has started is the first --config.
    """
    parser = parser_of(main, program)
    files: list[str] = []
    try:
        words, files = _config_first(words)
        options = parser.parse_args(words)
        if not files and (stored := _stored_config(options)):
            files = [stored]
            options = parser.parse_args(["--config", stored, *words])
        require_groups(vars(options), main)
        values = parser.instantiate(options).as_dict()
    except (jsonargparse.ArgumentError, InputError) as error:
        print(
            f"error: {_explain(error, main, parser, files)}\nSee {parser.prog} --help.",
            file=sys.stderr,
        )
        sys.exit(2)
    values.pop("config")
    return values


def parser_of(main: Callable[..., None], program: str | None = None) -> jsonargparse.ArgumentParser:
    """The parser of a command: options are named, typed and documented as parameters of `main`.

    A dataclass parameter `model` gives --model.d_model and so on. **decode_options give an option
    for each field of `DecodeConfig`, like --beam_size, None by default. *run_dirs are words without
    an option, at least one. --config reads options from a YAML file. Errors are
    `jsonargparse.ArgumentError`.
    """
    # The rules of `RunFolder.save_config`: jsonargparse's own read text like 1e3 as a number.
    jsonargparse.set_loader("yaml", yaml.safe_load, exceptions=(yaml.YAMLError,))
    summary = inspect.getdoc(main) or ""
    parser = _Parser(
        prog=program,
        description=summary.partition("\n\n")[0],
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument("--config", action="config", help="YAML file of options.")
    if name := _repeated(main):
        parser.add_argument(
            name, nargs="+", metavar=name.upper().removesuffix("S"), help=_help(main, name)
        )
    parser.add_function_arguments(_without_stars(main), as_group=False, sub_configs=True)
    if _takes_decode_options(main):
        parser.add_class_arguments(_optional(DecodeConfig))
    types = types_of(main)
    parser.set_defaults({name: value for name, value in DERIVED.items() if name in types})
    for action in parser._actions:  # argparse has no public list of them
        if types.get(action.dest) is bool:  # --resume alone means --resume true
            action.nargs, action.const = "?", True
    return parser


def types_of(main: Callable[..., None]) -> dict[str, Any]:
    """The types of a command's options by name, like {"train.steps": int}."""
    types: dict[str, Any] = {"config": str, "help": bool}
    for name, hint in get_type_hints(main).items():
        if dataclasses.is_dataclass(hint):
            types |= {f"{name}.{each}": kind for each, kind in get_type_hints(hint).items()}
        if name != _repeated(main):
            types[name] = hint
    return types | (get_type_hints(DecodeConfig) if _takes_decode_options(main) else {})


def _repeated(main: Callable[..., None]) -> str:
    """The name of the parameter *name; "" if there is none."""
    parameters = inspect.signature(main).parameters.values()
    return next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), "")


def _help(main: Callable[..., None], name: str) -> str:
    """The description of a parameter in the docstring."""
    documented = docstring_parser.parse(inspect.getdoc(main) or "").params
    return next(each.description or "" for each in documented if each.arg_name == name)


def _without_stars(main: Callable[..., None]) -> Callable[..., None]:
    """A function with the parameters of `main`, but without *names and **decode_options.

    For the latter, jsonargparse would import all that `main` calls, and so TensorFlow.
    """

    def function() -> None: ...

    signature = inspect.signature(main, eval_str=True)
    stars = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    named = [each for each in signature.parameters.values() if each.kind not in stars]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    function.__doc__, function.__module__ = main.__doc__, main.__module__
    return function


def _takes_decode_options(main: Callable[..., None]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(main).parameters.values())


def _config_first(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words with --config moved to the front, and the files it names."""
    files, rest, remaining = [], [], iter(words)
    for word in remaining:
        option, equals, value = word.partition("=")
        if option == "--config" and (file := value if equals else next(remaining, "")):
            files.append(file)
        else:
            rest.append(word)
    return [word for file in files for word in ("--config", file)] + rest, files


def _stored_config(options: jsonargparse.Namespace) -> str:
    """The configuration of the run that training goes on with; "" if there is none."""
    if "train" not in options:
        return ""
    run = RunFolder(options.run_dir)
    return str(run.config) if run.has_checkpoint and run.config.is_file() else ""


def _explain(
    error: Exception,
    main: Callable[..., None],
    parser: jsonargparse.ArgumentParser,
    files: list[str],
) -> str:
    """The error in a user's words, with the name of the YAML file that makes it by itself."""
    types = types_of(main)
    needed = [word for a in parser._actions if a.required for word in (*a.option_strings[:1], "x")]
    for file in files:
        try:
            options = parser.parse_args(["--config", file, *needed])
            require_groups(vars(options), main)
            parser.instantiate(options)
        except (jsonargparse.ArgumentError, InputError) as same:
            if str(same) == str(error) and os.path.isfile(file):
                return explain(str(error), types, file)
    explained = explain(str(error), types)
    return as_typed(explained, types) if isinstance(error, InputError) else explained


def _optional(config: type) -> type:
    """A dataclass with the fields and the documentation of `config`, each None by default."""
    _, _, rest = (inspect.getdoc(config) or "").partition("\n")
    return dataclasses.make_dataclass(
        f"Optional{config.__name__}",
        [(name, hint | None, None) for name, hint in get_type_hints(config).items()],
        namespace={"__doc__": f"Options of the search; null: as configured in the run.\n{rest}"},
    )
