"""The registry of tasks."""

import importlib

from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
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


def load_predictor(run: Run, dtype: str = "float32") -> Predictor:
    """A run's model, ready to predict with the search of its configuration.

    Args:
        run: the run.
        dtype: of weights and computation, float32 or bfloat16.

    Raises:
        InputError: when a file of the run is missing or broken, or the task does not exist.

    Example:
        >>> predict = load_predictor(Run.load("runs/demo", beam_size=2))
        >>> [prediction.text for prediction in predict([""])]
        ['']
    """
    task = get(run.config.task)
    model = run.model(task.build_model)
    return task.predictor(model, run.codec, run.config.decode).with_dtype(dtype)
