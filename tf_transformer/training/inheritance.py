"""What a run takes from the run in `train.init_from`, its origin; `Rules.from_origin` says it."""

import operator
from collections.abc import Collection, Iterable
from typing import Any

from tf_transformer.config import Config
from tf_transformer.data import corpora
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run

LANGUAGES = ("data.source_language", "data.target_language")


def dependent_options(config: Config) -> list[str]:
    """The names of the options whose value may come from an origin, like model.d_model."""
    rules = config.rules
    return [name for name in rules if rules[name].from_origin != "free" and name != "task"]


def inherited_options(config: Config, origin: Run, given: Collection[str]) -> dict[str, Any]:
    """The options of its origin that a new run takes, by name, unless they are given."""
    names = [name for name in _shared_options(config, origin.config) if name not in given]
    options = values(origin.config, names)
    pairs = zip(LANGUAGES, _languages(origin), strict=True)
    return options | {name: language for name, language in pairs if name in options}


def values(config: Config, names: Iterable[str]) -> dict[str, Any]:
    """The values of options with names like model.d_model."""
    return {name: operator.attrgetter(name)(config) for name in names}


def _shared_options(config: Config, origin: Config) -> list[str]:
    """The dependent options that a run shares with its origin.

    An origin with another task shares only options of the model and of the vocabulary, because its
    texts and predictions are of another kind.
    """
    names = dependent_options(config)
    if origin.task.name == config.task.name:
        return names
    return [
        name for name in names if name.startswith(("model.", "data.")) and name not in LANGUAGES
    ]


def _languages(origin: Run) -> tuple[str, str]:
    """The languages of a new run on the text of its origin; "" for an unknown one.

    A model with target tags has several target languages.
    """
    source, target = corpora.directions(origin.config)[0]
    if origin.config.data.target_language == corpora.SEVERAL:
        return source or "", corpora.SEVERAL
    return source or "", "" if _has_tags(origin) else target or ""


def _has_tags(run: Run) -> bool:
    return any(tokenizer.tags for tokenizer in run.codec.tokenizers.values())


def require_same_options(run: Run) -> None:
    """Raises an `InputError` if an option of a new run differs on which the weights depend."""
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


def require_direction(run: Run, given: Collection[str]) -> None:
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
    if set(LANGUAGES) & set(given):
        allowed.append((data.source_language, data.target_language))
    corpora.require_direction(data, allowed, str(origin.folder.path))
