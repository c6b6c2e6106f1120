"""Tasks by name, and the predictor of a run."""

from tf_transformer.config import Config
from tf_transformer.inference.predictor import load_predictor
from tf_transformer.registry import TASKS, register_task
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
    """The task with a name: a registered name, or "module:attribute" of any other task.

    Raises:
        InputError: for an unknown name, module or attribute.

    Example:
        >>> get("translation").fields
        ('source', 'target')
    """
    return TASKS.get(name)


def for_run(config: Config) -> Task:
    """The task of a configuration, with the options in the configuration."""
    return get(config.task.name).with_options(config.task)
