"""The options of a training that nobody gave: from the size of its text, and from `init_from`."""

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from tqdm import tqdm

from tf_transformer.config import FITTING, Config, DecodeConfig, ModelConfig
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Task
from tf_transformer.training import defaults

GROUPS = ("model.", "data.", "train.")
RATE = "train.learning_rate"
# The options that a run takes from the run in `train.init_from`.
OF_MODEL = tuple(f"model.{field.name}" for field in fields(ModelConfig))
OF_TEXT = ("data.vocabularies", "data.vocabulary_size", "data.segmentation", "data.normalization")
# Without average: a training averages its own checkpoints.
OF_SEARCH = tuple(f"decode.{x.name}" for x in fields(DecodeConfig) if x.name != "average")


def fit_to_text(run: Run, task: Task, given: Collection[str]) -> Run:
    """The run with options that fit its training text in place of defaults; see `defaults`.

    A run that starts with the weights of another also has the model, the vocabulary and the search
    of that run, and a lower learning rate. A run that has started keeps its options. Chosen options
    are printed.

    Args:
        run: to train; its folder may be new.
        task: of the training.
        given: names of the options that are kept, like model.d_model.

    Raises:
        InputError: for data that cannot be read.
    """
    open_options = [name for name in FITTING if name not in given]
    inherited = [name for name in _inherited(run.config) if name not in given]
    if run.folder.has_checkpoint:
        return _with_options(run, _values(run.folder.load_config(), open_options + inherited))
    fixed = _of_origin(run, inherited)
    if own := task.own_codec(run.config):
        fixed["data.vocabulary_size"] = max(own.sizes)
    size = task.text_size(run.config) if open_options else None
    if not size:
        return _with_options(run, fixed)
    kept = _values(run.config, [name for name in given if name.startswith(GROUPS)])
    choice = defaults.choose(size, kept | fixed)
    for line in choice.reasons:
        tqdm.write(line)
    return _with_options(run, choice.values | fixed)


def _inherited(config: Config) -> list[str]:
    """The names of the options that depend on the run in `train.init_from`, if there is one."""
    return [*OF_MODEL, *OF_TEXT, *OF_SEARCH, RATE] if config.train.init_from else []


def _of_origin(run: Run, names: Sequence[str]) -> dict[str, Any]:
    """The options of the run in `train.init_from`, and a lower learning rate."""
    if not run.origin:
        return {}
    origin, folder = run.origin.config, run.origin.folder.path
    is_same_task = origin.task.name == run.config.task.name
    of_task = (*OF_SEARCH, RATE)
    options = _values(
        origin, [x for x in names if x != RATE and (is_same_task or x not in of_task)]
    )
    tqdm.write(f"taken from {folder}, if not given: options of the model, the text and the search")
    if is_same_task and RATE in names:
        options[RATE] = defaults.FINE_TUNING_RATE
        tqdm.write(
            f"chosen for a trained model: --{RATE} {options[RATE]}, so that it keeps what it knows"
        )
    return options


def _values(config: Config, options: Iterable[str]) -> dict[str, Any]:
    """The values of options with names like model.d_model."""
    return {option: operator.attrgetter(option)(config) for option in options}


def _with_options(run: Run, options: Mapping[str, Any]) -> Run:
    """The run with other values of options, by names like model.d_model."""
    groups: dict[str, dict[str, Any]] = {}
    for option, value in options.items():
        group, _, name = option.partition(".")
        groups.setdefault(group, {})[name] = value
    changed = {name: replace(getattr(run.config, name), **own) for name, own in groups.items()}
    return replace(run, config=replace(run.config, **changed))
