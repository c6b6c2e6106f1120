"""The registry of tasks."""

import importlib
import os
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import load_model
from tf_transformer.tasks.task import Evaluation, Prediction, Predictor, Splits, Task, TestSet

__all__ = [
    "Evaluation",
    "Prediction",
    "Predictor",
    "Splits",
    "Task",
    "TestSet",
    "get",
    "load_predictor",
    "register",
]

_tasks: dict[str, Task | str] = {}


def register(name: str, task: Task | str) -> None:
    """Makes a task known by a name, for `Config.task` and `--task`.

    Args:
        name: the name.
        task: the task, or "module:attribute", which is imported when the task is needed.
    """
    _tasks[name] = task


register("translation", "tf_transformer.tasks.translation:TRANSLATION")
register("language_modeling", "tf_transformer.tasks.language_modeling:LANGUAGE_MODELING")
register("parsing", "tf_transformer.tasks.parsing:PARSING")
register(
    "masked_language_modeling",
    "tf_transformer.tasks.masked_language_modeling:MASKED_LANGUAGE_MODELING",
)
register("classification", "tf_transformer.tasks.classification:CLASSIFICATION")


def get(name: str) -> Task:
    """The task of this name.

    Args:
        name: a registered name, or "module:attribute" of a task that is not registered.

    Raises:
        InputError: for an unknown name, or a module or attribute that does not exist.

    Example:
        >>> get("translation").fields
        ('source', 'target')
    """
    task = _tasks.get(name, name)
    if not isinstance(task, str):
        return task
    module, _, attribute = task.partition(":")
    if not attribute:
        raise InputError(
            f"unknown task {name!r}; expected {', '.join(sorted(_tasks))}, or module:attribute."
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise InputError(f"task {name!r} cannot be imported: {error}.") from error


def load_predictor(
    run_dir: str | os.PathLike, dtype: str = "float32", **decode_options: Any
) -> Predictor:
    """A run's model, ready to predict.

    Args:
        run_dir: the run's folder.
        dtype: of weights and computation, float32 or bfloat16.
        **decode_options: fields of `DecodeConfig` that replace the run's own; None keeps those.

    Raises:
        InputError: when the folder is not a run's folder, or an option is out of range.
    """
    task = get(RunFolder(run_dir).load_config().task)
    model, codec, decode = load_model(run_dir, task.build_model, **decode_options)
    return task.predictor(model, codec, decode).with_dtype(dtype)
