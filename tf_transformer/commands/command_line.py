"""How the commands at the top of the tree read their options and report errors."""

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable
from typing import get_type_hints

# Before TensorFlow is imported: its start-up notices are no news to a user.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jsonargparse

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError


def run(main: Callable[..., None]) -> None:
    """Calls `main` with options named and typed as its parameters are.

    A dataclass parameter `model` gives options --model.d_model and so on, and **decode_options
    an option for each field of `DecodeConfig`: --beam_size and so on, None when not given.
    --config reads them all from a YAML file. Bad options exit with status 2, bad input with 1,
    both without a traceback.
    """
    parser = parser_of(main)
    try:
        options = vars(parser.instantiate(parser.parse_args()))
        options.pop("config")
        main(**options)
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except BrokenPipeError:  # as when `head` has read enough
        # What is left in the buffer has nowhere to go, and Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def parser_of(main: Callable[..., None]) -> jsonargparse.ArgumentParser:
    """The parser of a command's options, documented from its docstring."""
    summary = inspect.getdoc(main) or ""
    parser = jsonargparse.ArgumentParser(
        description=summary.partition("\n\n")[0], allow_abbrev=False
    )
    parser.add_argument("--config", action="config", help="YAML file of options.")
    parser.add_function_arguments(main, as_group=False, sub_configs=True)
    kinds = {parameter.kind for parameter in inspect.signature(main).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        parser.add_class_arguments(_optional(DecodeConfig))
    hints = get_type_hints(main) | get_type_hints(DecodeConfig)
    for action in parser._actions:  # argparse knows no other way to them
        if hints.get(action.dest) is bool:  # --resume alone is --resume true
            action.nargs, action.const = "?", True
    return parser


def _optional(config: type) -> type:
    """A dataclass with the fields and the documentation of `config`, each None by default."""
    _, _, rest = (inspect.getdoc(config) or "").partition("\n")
    return dataclasses.make_dataclass(
        f"Optional{config.__name__}",
        [(name, hint | None, None) for name, hint in get_type_hints(config).items()],
        namespace={"__doc__": f"How to translate; null: as the run was configured.\n{rest}"},
    )
