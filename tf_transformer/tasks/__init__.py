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
    """The task with a name, with its default options.

    Args:
        name: a registered name, or "module:attribute" of any other task.

    Raises:
        InputError: for an unknown name, module or attribute.

    Example:
        >>> get("translation").fields
        ('source', 'target')
    """
    return TASKS.get(name)


def for_run(config: Config) -> Task:
    """The task of a configuration, with the options in the configuration.

    Raises:
        InputError: for an unknown task, or options that cannot be used on this machine.
    """
    return get(config.task.name).with_options(config.task)
