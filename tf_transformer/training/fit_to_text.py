"""The options of training that nobody gave: from its origin, and from the size of its text."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tqdm import tqdm

from tf_transformer.config.option import select
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Task
from tf_transformer.training import defaults, inheritance
from tf_transformer.training.inheritance import values

GROUPS = ("model.", "data.", "train.")


def fit_to_text(run: Run, task: Task, given: Collection[str]) -> Run:
    """The run with options that fit its training text in place of defaults; see `defaults`.

    A run that starts with the weights of another also has options of that run, and a lower learning
    rate; see `inheritance`. A run that has started keeps its options. Chosen options are printed.
    The options `given`, by names like model.d_model, are kept.

    Raises:
        InputError: for data that cannot be read, and for options or text that do not fit the
            weights that the run starts with.
    """
    open_options = [name for name in defaults.FITTING if name not in given]
    if run.folder.has_checkpoint:
        return _with_options(run, _of_started(run, open_options, given))
    fixed = _of_origin(run, task, given)
    run = _with_options(run, fixed)
    if not run.origin and (own := task.own_codec(run.config)):
        fixed["data.vocabulary_size"] = max(own.sizes)
    size = task.text_size(run.config) if open_options else None
    if not size:
        return _with_options(run, fixed)
    in_config = run.config.rules  # without short forms, which no configuration keeps
    kept = [name for name in given if name.startswith(GROUPS) and name in in_config]
    choice = defaults.choose(size, values(run.config, kept) | fixed)
    for line in choice.reasons:
        tqdm.write(line)
    return _with_options(run, choice.values | fixed)


def _of_started(run: Run, names: Sequence[str], given: Collection[str]) -> dict[str, Any]:
    """The options `names` of a run that has started, and options that depend on its origin."""
    stored = run.folder.load_config()
    if run.config.train.init_from:
        tuned = select(run.config, lambda rules: rules.fine_tuning)
        names = [*names, *inheritance.dependent_options(run.config), *tuned]
    is_same_task = stored.task.name == run.config.task.name
    kept = [name for name in names if is_same_task or not name.startswith("task.")]
    return values(stored, [name for name in kept if name not in given])


def _of_origin(run: Run, task: Task, given: Collection[str]) -> dict[str, Any]:
    """The options of the run in `train.init_from`, and a lower learning rate."""
    if not run.origin:
        return {}
    origin, folder = run.origin.config, run.origin.folder.path
    options = inheritance.inherited_options(run.config, run.origin, given)
    inheriting = _with_options(run, options)
    inheritance.require_same_options(inheriting)
    completed = replace(inheriting, config=task.complete(inheriting.config))
    inheritance.require_direction(completed, given)
    groups = dict.fromkeys(name.partition(".")[0] for name in options)
    tqdm.write(f"taken from {folder}, if not given: options of {', '.join(groups)}")
    if origin.task.name == run.config.task.name:
        for name, rules in run.config.rules.items():
            if rules.fine_tuning and name not in given:
                options[name] = rules.fine_tuning
                tqdm.write(
                    f"chosen for a trained model: --{name} {options[name]}, so that it keeps what "
                    "it knows"
                )
    return options


def _with_options(run: Run, options: Mapping[str, Any]) -> Run:
    """The run with other values of options, by names like model.d_model."""
    groups: dict[str, dict[str, Any]] = {}
    for option, value in options.items():
        group, _, name = option.partition(".")
        groups.setdefault(group, {})[name] = value
    changed = {name: replace(getattr(run.config, name), **own) for name, own in groups.items()}
    return replace(run, config=replace(run.config, **changed))
