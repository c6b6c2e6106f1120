"""What a run is for: its task and its direction. The runs of an ensemble have one purpose."""

import itertools
import sys
from collections.abc import Sequence

from tf_transformer.config import Config
from tf_transformer.config.option import select
from tf_transformer.data.corpora import differ, run_languages
from tf_transformer.errors import InputError


def direction_of(config: Config) -> tuple[str, ...]:
    """The languages of the source and the target of a translator; (): unknown, or another task."""
    source, target = run_languages(config)
    if source and target and config.task.name == "translation":
        return source, target
    return ()


def require_one_purpose(runs: Sequence[tuple[object, Config]], target_tag: str | None) -> None:
    """Raises an `InputError` if the runs of an ensemble, by name, differ in their purpose.

    They need one task, direction, form of output, and target tag if none is given for all runs. A
    warning on stderr says that a direction is unknown.
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
    known = [(name, run, way) for name, run in runs if (way := direction_of(run))]
    for (one, run, way), (another, _, other_way) in itertools.combinations(known, 2):
        sides = 1 if run.decode.target_tag else 2  # a target tag decides the target language
        if differ(way[:sides], other_way[:sides]):
            raise InputError(
                f"the runs of an ensemble need one direction, but {one} translates from {way[0]} "
                f"to {way[1]}, and {another} from {other_way[0]} to {other_way[1]}."
            )
    unknown = [str(name) for name, run in runs if not direction_of(run)]
    if others and unknown and config.task.name == "translation":
        print(
            f"warning: the languages of {' and '.join(unknown)} are unknown, so nothing checks "
            "that the runs of this ensemble translate in one direction",
            file=sys.stderr,
        )
