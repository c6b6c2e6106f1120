"""Builds and runs the task of a system; called in the process of that system.

A benchmark that compares systems has a module `systems` with

- SYSTEMS: a `System` for each name;
- Cell: the numbers that a measurement varies, like beam and batch.
"""

import functools
import importlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.harness.shapes import SHAPES, Shape
from benchmarks.harness.usage import Usage, usage_of
from benchmarks.harness.worker import function_at


class Setting(NamedTuple):
    """The folders of a system, and the sizes of its model.

    Attributes:
        shape: sizes of the model.
        shared: folder of all systems with this shape.
        own: folder of this system and shape.
    """

    shape: Shape
    shared: pathlib.Path
    own: pathlib.Path


class Task(NamedTuple):
    """A system that is ready to be measured in a cell.

    Attributes:
        tokens: number of target tokens of a run.
        run: the work that is timed; it returns when everything is computed.
        check: function of the result of `run`. It raises an error for a wrong result, and returns a
            number to report, or None.
        steps: number of calls or updates in a run.
        parameters: number of trained parameters; 0 without training.
    """

    tokens: int
    run: Callable[[], Any]
    check: Callable[[Any], float | None]
    steps: int = 1
    parameters: int = 0


def build(systems: str, system: str, shape: str, folder: str, cells: Sequence[list]) -> None:
    """Writes the files that a system needs.

    Args:
        systems: the module of all systems.
        system: name of the system.
        shape: name of the shape.
        folder: folder for the files of all systems.
        cells: the cells that will be measured.
    """
    registry = importlib.import_module(systems)
    found = registry.SYSTEMS[system]
    if found.build:
        setting = _setting(system, shape, folder)
        made = [registry.Cell(*cell) for cell in cells]
        function_at(found.build)(setting, made, **found.build_options)


def measure(
    systems: str,
    system: str,
    shape: str,
    folder: str,
    cell: list,
    warm_up: int = 0,
    repeats: int = 1,
    min_seconds: float = 0.0,
) -> dict[str, Any]:
    """Runs a task. Calls with the same cell in succession use the same task.

    Args:
        systems: the module of all systems.
        system: name of the system.
        shape: name of the shape.
        folder: folder for the files of all systems.
        cell: the cell to measure.
        warm_up: number of runs that are not timed.
        repeats: smallest number of timed runs.
        min_seconds: smallest total time of these runs.

    Returns:
        the fields of a `speed.Measurement` except its place.
    """
    task = _task(systems, system, shape, folder, tuple(cell))
    checked = [task.check(task.run()) for _ in range(warm_up)]
    usages: list[Usage] = []
    while len(usages) < repeats or sum(usage.seconds for usage in usages) < min_seconds:
        result, usage = usage_of(task.run)
        usages.append(usage)
        checked.append(task.check(result))
    values = [value for value in checked if value is not None]
    fields = {"tokens": task.tokens, "steps": task.steps, "parameters": task.parameters}
    return fields | {"usages": usages, "values": values}


@functools.lru_cache(maxsize=1)
def _task(systems: str, system: str, shape: str, folder: str, cell: tuple) -> Task:
    registry = importlib.import_module(systems)
    found = registry.SYSTEMS[system]
    setting = _setting(system, shape, folder)
    return function_at(found.task)(setting, registry.Cell(*cell), **found.task_options)


def _setting(system: str, shape: str, folder: str) -> Setting:
    shared = pathlib.Path(folder) / shape
    return Setting(SHAPES[shape], shared, shared / system)
