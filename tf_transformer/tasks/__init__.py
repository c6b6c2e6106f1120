"""Tasks by name, and the predictor of a run."""

from tf_transformer.config import Config
from tf_transformer.registry import TASKS, register_task
from tf_transformer.run.run import Run
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
    task = for_run(run.config)
    model = run.model(task.build_model)
    return task.predictor(model, run.codec, run.config.decode).with_dtype(dtype)
