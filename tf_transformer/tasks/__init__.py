"""Tasks by name, and the predictor of a run."""

import os
from collections.abc import Mapping
from typing import Any

from tf_transformer.config import Config
from tf_transformer.registry import TASKS, register_task
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
    "for_run",
    "get",
    "load_predictor",
    "register",
]

register = register_task


def get(name: str) -> Task:
    """The task of this name, with its default options.

    Args:
        name: a registered name, or "module:attribute" of a task that is not registered.

    Raises:
        InputError: for an unknown name, or a module or attribute that does not exist.

    Example:
        >>> get("translation").fields
        ('source', 'target')
    """
    return TASKS.get(name)


def for_run(config: Config) -> Task:
    """The task of a configuration, with its options.

    Raises:
        InputError: as `get`, and for options that cannot be used here.
    """
    return get(config.task.name).with_options(config.task)


def load_predictor(
    run_dir: str | os.PathLike,
    dtype: str = "float32",
    task_options: Mapping[str, Any] | None = None,
    **decode_options: Any,
) -> Predictor:
    """A run's model, ready to predict.

    Args:
        run_dir: the run's folder.
        dtype: of weights and computation, float32 or bfloat16.
        task_options: options of the run's task that replace the run's own; None keeps them.
        **decode_options: fields of `DecodeConfig`, likewise.

    Raises:
        InputError: when the folder is not a run's folder, or an option is out of range.
    """
    task = for_run(RunFolder(run_dir).load_config(task_options))
    model, codec, decode = load_model(run_dir, task.build_model, **decode_options)
    return task.predictor(model, codec, decode).with_dtype(dtype)
