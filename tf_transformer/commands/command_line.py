"""Reads the options of a command and reports its errors."""

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import get_type_hints

import jsonargparse

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError


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
    parser = parser_of(main, program)
    try:
        options = vars(parser.instantiate(parser.parse_args(arguments)))
        options.pop("config")
        main(**options)
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except BrokenPipeError:  # for example, `head` has read enough lines
        # Python flushes stdout at exit, which would raise the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def parser_of(main: Callable[..., None], program: str | None = None) -> jsonargparse.ArgumentParser:
    """The parser of a command: options are named, typed and documented as parameters of `main`.

    A dataclass parameter `model` gives --model.d_model and so on. **decode_options give an option
    for each field of `DecodeConfig`, like --beam_size, None by default. --config reads options from
    a YAML file.
    """
    summary = inspect.getdoc(main) or ""
    parser = jsonargparse.ArgumentParser(
        prog=program, description=summary.partition("\n\n")[0], allow_abbrev=False
    )
    parser.add_argument("--config", action="config", help="YAML file of options.")
    parser.add_function_arguments(main, as_group=False, sub_configs=True)
    kinds = {parameter.kind for parameter in inspect.signature(main).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        parser.add_class_arguments(_optional(DecodeConfig))
    hints = get_type_hints(main) | get_type_hints(DecodeConfig)
    for action in parser._actions:  # argparse has no public list of them
        if hints.get(action.dest) is bool:  # --resume alone means --resume true
            action.nargs, action.const = "?", True
    return parser


def _optional(config: type) -> type:
    """A dataclass with the fields and the documentation of `config`, each None by default."""
    _, _, rest = (inspect.getdoc(config) or "").partition("\n")
    return dataclasses.make_dataclass(
        f"Optional{config.__name__}",
        [(name, hint | None, None) for name, hint in get_type_hints(config).items()],
        namespace={"__doc__": f"Options of the search; null: as configured in the run.\n{rest}"},
    )
