"""The options of training that nobody gave: from another run, and from the size of its text.

The other run is in `train.init_from`, the origin of the run. `Rules.from_origin` says what comes
from it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tqdm import tqdm

from tf_transformer.config import Config
from tf_transformer.config.option import select
from tf_transformer.data import corpora
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Task
from tf_transformer.training import defaults

GROUPS = ("model.", "data.", "train.")
# What a model reads in a search, by the option: the change of its text that it learns this from.
LEARNED = {"decode.keep_as": ("copy", "emoji"), "decode.terms_as": ("terms", "text")}
ALIGNING = ("decode.alignment_layer", "decode.alignment_head")


def fit_to_text(run: Run, task: Task, given: Collection[str]) -> Run:
    """The run with options that fit its training text in place of defaults; see `defaults`.

    A model that learns to copy emoji (`data.augment.copy`) reads them in place of spans, and one
    that learns terms reads them. Guided alignment teaches the first head of the layer before the
    last.

    A run that starts with the weights of another also has options of that run, and a lower learning
    rate. A run that has started keeps its options. Chosen options are printed, with the defaults of
    the task. The options `given`, by names like model.d_model, are kept. Data that cannot be read,
    and options or text that do not fit the weights of the origin, are an `InputError`.
    """
    fitted = _fitted(run, task, given)
    return _with_options(fitted, _of_alignment(fitted, given))  # after the number of layers


def _fitted(run: Run, task: Task, given: Collection[str]) -> Run:
    """`fit_to_text` without the head for guided alignment."""
    open_options = [name for name in defaults.FITTING if name not in given]
    of_task = {name: value for name, value in task.defaults().items() if name not in given}
    if run.folder.has_checkpoint:
        names = [*open_options, *LEARNED, *ALIGNING, *of_task]
        return _with_options(run, _of_started(run, names, given))
    fixed = of_task | _of_origin(run, task, given)
    run = _with_options(run, fixed)
    fixed |= _of_changes(run, given)
    for name, value in of_task.items():
        tqdm.write(f"chosen for {run.config.task.name}: --{name} {value}")
    if not run.origin and (own := task.own_codec(run.config)):
        fixed["data.vocabulary_size"] = max(own.sizes)
    size = task.text_size(run.config) if open_options else None
    if not size:
        return _with_options(run, fixed)
    in_config = run.config.rules  # without short forms, which no configuration keeps
    kept = [name for name in given if name.startswith(GROUPS) and name in in_config]
    values = run.config.values(kept) | fixed
    if run.config.train.stages:  # which have updates of their own
        values["train.steps"] = 0
    choice = defaults.choose(size, values)
    for line in choice.reasons:
        tqdm.write(line)
    return _with_options(run, choice.values | fixed)


def require_same_options(run: Run) -> None:
    """Raises an `InputError` if an option that the weights depend on is not that of the origin."""
    if not run.origin:
        return
    origin, rules = run.origin.config, run.config.rules
    shared = _shared_options(run.config, origin)
    listed = "; ".join(
        f"{name} is {old!r} there, {new!r} here"
        for name, (old, new) in origin.differences(run.config).items()
        if name in shared and rules[name].from_origin == "same"
    )
    if listed:
        raise InputError(
            f"train.init_from={run.origin.folder.path} cannot start this run: {listed}. The "
            "weights depend on these options. Leave them out, so that the run takes them from "
            "there."
        )


def _of_started(run: Run, names: Sequence[str], given: Collection[str]) -> dict[str, Any]:
    """The options `names` of a run that has started, and options that depend on its origin."""
    stored = run.folder.load_config()
    if run.config.train.init_from:
        tuned = select(run.config, lambda rules: rules.fine_tuning)
        names = [*names, *_dependent_options(run.config), *tuned]
    is_same_task = stored.task.name == run.config.task.name
    kept = [name for name in names if is_same_task or not name.startswith("task.")]
    return stored.values(name for name in kept if name not in given)


def _of_origin(run: Run, task: Task, given: Collection[str]) -> dict[str, Any]:
    """The options of the origin, unless they are given, and a lower learning rate."""
    if not run.origin:
        return {}
    origin = run.origin.config
    shared = _shared_options(run.config, origin)
    options = origin.values(name for name in shared if name not in given)
    languages = zip(corpora.LANGUAGES, _languages(run.origin), strict=True)
    options |= {name: language for name, language in languages if name in options}
    inheriting = _with_options(run, options)
    require_same_options(inheriting)
    _require_direction(replace(inheriting, config=task.complete(inheriting.config)), given)
    if groups := dict.fromkeys(name.partition(".")[0] for name in options):
        tqdm.write(
            f"taken from {run.origin.folder.path}, if not given: options of {', '.join(groups)}"
        )
    if origin.task.name == run.config.task.name:
        for name, rules in run.config.rules.items():
            if rules.fine_tuning and name not in given:
                options[name] = rules.fine_tuning
                tqdm.write(
                    f"chosen for a trained model: --{name} {options[name]}, so that it keeps what "
                    "it knows"
                )
    return options


def _of_changes(run: Run, given: Collection[str]) -> dict[str, Any]:
    """What a model reads in a search, if it learns this from changed text, unlike its origin."""
    chosen = {}
    for option, (change, value) in LEARNED.items():
        knew = run.origin is not None and getattr(run.origin.config.data.augment, change)
        if getattr(run.config.data.augment, change) and not knew and option not in given:
            tqdm.write(f"chosen for --data.augment.{change}: --{option} {value}, which it learns")
            chosen[option] = value
    return chosen


def _of_alignment(run: Run, given: Collection[str]) -> dict[str, Any]:
    """The head that learns guided alignment, if neither the user nor the origin has named it."""
    config = run.config
    is_named = bool({*ALIGNING} & {*given}) or config.decode.alignment_head >= 0
    if not config.train.guided_alignment_weight or is_named or run.folder.has_checkpoint:
        return {}
    is_deep = config.model.architecture == "transformer" and config.model.decoder.num_layers > 1
    head = dict(zip(ALIGNING, (-2 if is_deep else -1, 0), strict=True))
    listed = ", ".join(f"--{name} {value}" for name, value in head.items())
    tqdm.write(f"chosen for --train.guided_alignment_weight: {listed}, the head that aligns words")
    return head


def _with_options(run: Run, options: Mapping[str, Any]) -> Run:
    """The run with other values of options, by names like model.d_model."""
    return replace(run, config=run.config.with_options(options))


def _dependent_options(config: Config) -> list[str]:
    """The names of the options whose value may come from an origin."""
    rules = config.rules
    return [name for name in rules if rules[name].from_origin != "free" and name != "task"]


def _shared_options(config: Config, origin: Config) -> list[str]:
    """The dependent options that a run shares with its origin.

    An origin with another task shares only options of the model and of the vocabulary, because its
    texts and predictions are of another kind.
    """
    names = _dependent_options(config)
    if origin.task.name == config.task.name:
        return names
    return [
        name
        for name in names
        if name.startswith(("model.", "data.")) and name not in corpora.LANGUAGES
    ]


def _languages(origin: Run) -> tuple[str, str]:
    """The languages of a new run on the text of its origin; "" if unknown or one of several."""
    source, target = corpora.directions(origin.config)[0]
    if origin.config.data.target_language == corpora.SEVERAL:
        return source or "", corpora.SEVERAL
    return source or "", "" if _has_tags(origin) else target or ""


def _has_tags(run: Run) -> bool:
    return any(tokenizer.tags for tokenizer in run.codec.tokenizers.values())


def _require_direction(run: Run, given: Collection[str]) -> None:
    """Raises an `InputError` if the text of a new run goes in no direction of its origin.

    Languages that are given allow their direction, too.
    """
    origin, data = run.origin, run.config.data
    if not origin or origin.config.task.name != run.config.task.name:
        return
    allowed = corpora.directions(origin.config)
    targets = data.target_language, origin.config.data.target_language
    has_new_tag = "decode.target_tag" in given or not run.config.decode.target_tag
    if corpora.SEVERAL in targets or (_has_tags(origin) and has_new_tag):
        allowed = [(source, None) for source, _ in allowed]
    if set(corpora.LANGUAGES) & set(given):
        allowed.append((data.source_language, data.target_language))
    corpora.require_direction(data, allowed, str(origin.folder.path))
