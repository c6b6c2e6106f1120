"""One contender and shape in a process of its own; decode.py starts it.

    python benchmarks/worker.py STEP CONTENDER SHAPE FOLDER REQUEST

STEP is build or measure, REQUEST is JSON; measuring prints a line for each cell. What contenders
import and how they set up threads stays apart so.
"""

import importlib
import json
import pathlib
import sys
import time
from collections.abc import Callable

from contenders import CONTENDERS
from workload import SHAPES, Cell, Setting, Task

MARK = "measured "  # starts the lines meant for decode.py; libraries print others
_WARM_UP_CALLS = 3


def main(step: str, name: str, shape: str, folder: str, request: str) -> None:
    """Builds a contender's files, or times its cells."""
    contender, asked = CONTENDERS[name], json.loads(request)
    shared = pathlib.Path(folder) / shape
    setting = Setting(SHAPES[shape], shared, shared / name)
    cells = [Cell(*cell) for cell in asked["cells"]]
    if step == "build":
        if contender.build:
            function_at(contender.build)(setting, cells, **contender.build_options)
        return
    for cell in cells:
        task = function_at(contender.task)(setting, cell, **contender.task_options)
        seconds = time_calls(task, asked["repeats"], asked["min_seconds"])
        measured = {"cell": cell, "sentences": task.sentences, "seconds": seconds}
        print(MARK + json.dumps(measured), flush=True)


def time_calls(task: Task, repeats: int, min_seconds: float) -> list[float]:
    """Seconds of at least `repeats` calls that together take at least `min_seconds`."""
    for _ in range(_WARM_UP_CALLS):
        result = task.translate()
    task.check(result)
    seconds: list[float] = []
    while len(seconds) < repeats or sum(seconds) < min_seconds:
        start = time.perf_counter()
        result = task.translate()
        seconds.append(time.perf_counter() - start)
    task.check(result)
    return seconds


def function_at(place: str) -> Callable:
    """What module:function names; the module is imported now and not before."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


if __name__ == "__main__":
    main(*sys.argv[1:])
