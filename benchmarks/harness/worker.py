"""The program that `processes.Process` starts; it calls functions in its process.

Each line on stdin is a JSON list: a function as module:name, and its keyword arguments. The result
goes to stdout as a line of JSON after `MARK`. The first call imports the module, so that libraries
and their threads stay in the process of the system that needs them. Each system imports TensorFlow
and keeps freed memory like the commands of this project. Otherwise, on some machines, page faults
take more time than any difference between systems.
"""

import importlib
import json
import sys
from collections.abc import Callable

from tf_transformer.machine.heap import keep_freed_memory

MARK = "result "  # libraries print other lines


def main() -> None:
    """Answers all lines of stdin."""
    keep_freed_memory()
    for line in sys.stdin:
        place, arguments = json.loads(line)
        print(MARK + json.dumps(function_at(place)(**arguments)), flush=True)


def function_at(place: str) -> Callable:
    """The function that module:name names."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


if __name__ == "__main__":
    main()
