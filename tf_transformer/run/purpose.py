"""What a run is for: its task and its direction. The runs of an ensemble have one purpose."""

import itertools
import sys
from collections.abc import Sequence

from tf_transformer.config import Config
from tf_transformer.config.option import select
from tf_transformer.data.corpora import differ, run_languages
from tf_transformer.errors import InputError


def direction_of(config: Config) -> tuple[str, ...]:
    """The languages of the source and the target of a translator; (): unknown, or another task.

    Example:
        >>> from tf_transformer.config import DataConfig
        >>> direction_of(Config(data=DataConfig(train_source="a.de", train_target="a.en")))
        ('de', 'en')
    """
    source, target = run_languages(config)
    if source and target and config.task.name == "translation":
        return source, target
    return ()


def require_one_purpose(runs: Sequence[tuple[object, Config]], target_tag: str | None) -> None:
    """Checks that the runs of an ensemble have one task, direction, target tag and form of output.

    A warning on stderr says that a direction is unknown.

    Args:
        runs: the names of the runs, and their configurations.
        target_tag: the target tag that was given for all runs; None: each run has its own.

    Raises:
        InputError: for runs with different purposes.
    """
    (first, config), *others = runs
    names = [
        f"task.{name}" for name in select(config.task, lambda rules: rules.from_origin == "same")
    ]
    names += ["decode.target_tag"] if target_tag is None else []
    for other, theirs in others:
        if theirs.task.name != config.task.name:
            raise InputError(
                f"the runs of an ensemble need one task, but {first} is for {config.task.name} and "
                f"{other} for {theirs.task.name}."
            )
        for name, (our_value, other_value) in config.differences(theirs).items():
            if name in names:
                raise InputError(
                    f"the runs of an ensemble need one {name}, but it is {our_value!r} in {first} "
                    f"and {other_value!r} in {other}."
                )
    for one, another in itertools.combinations(runs, 2):
        _require_one_direction(one, another)
    unknown = [str(name) for name, run in runs if not direction_of(run)]
    if others and unknown and config.task.name == "translation":
        print(
            f"warning: the languages of {' and '.join(unknown)} are unknown, so nothing checks "
            "that the runs of this ensemble translate in one direction",
            file=sys.stderr,
        )


def _require_one_direction(one: tuple[object, Config], other: tuple[object, Config]) -> None:
    """Checks the directions of two translators. A target tag decides the target language."""
    names, config = (one[0], other[0]), one[1]
    ours, theirs = direction_of(config), direction_of(other[1])
    if ours and theirs:
        sides = 1 if config.decode.target_tag else 2
        if differ(ours[:sides], theirs[:sides]):
            raise InputError(
                f"the runs of an ensemble need one direction, but {names[0]} translates from "
                f"{ours[0]} to {ours[1]}, and {names[1]} from {theirs[0]} to {theirs[1]}."
            )
