"""How the commands at the top of the tree read their options and report errors."""

import os
import sys
from collections.abc import Callable

# Before TensorFlow is imported: its start-up notices are no news to a user.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jsonargparse

from tf_transformer.errors import InputError


def run(main: Callable[..., None]) -> None:
    """Calls `main` with options named and typed as its parameters are.

    A dataclass parameter `model` gives options --model.d_model and so on; --config reads them
    from a YAML file. Bad options exit with status 2, bad input with 1, both without a traceback.
    """
    try:
        jsonargparse.auto_cli(main, as_positional=False, allow_abbrev=False)
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
