"""From measured runs to speeds: medians, rounds, page faults and system time."""

import statistics
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import results
from benchmarks.harness.environment import circumstances
from benchmarks.harness.tables import markdown
from benchmarks.harness.turns import Job
from benchmarks.harness.usage import Usage


class Place(NamedTuple):
    """Where a speed belongs in a table."""

    shape: str
    system: str
    cell: Any  # a NamedTuple of the benchmark's own


class Measurement(NamedTuple):
    """The runs of one process in one cell."""

    place: Place
    tokens: int  # target tokens of a run
    steps: int  # calls or updates of a run
    parameters: int
    usages: list[Usage]  # of the timed runs
    values: list[float]  # what the checks gave, warm-up included
    ready_seconds: float = 0.0  # from the start of the process to the end of the warm-up


class Speed(NamedTuple):
    """The entry of a system in a table cell; faults and times are per call or update."""

    tokens_per_second: float
    median_seconds: float  # over all rounds
    minor_faults: float
    system_seconds: float
    rounds: list[float]  # tokens per second by the median of each round


Speeds = Mapping[Place, Speed]


def measurement(place: Place, fields: Mapping[str, Any]) -> Measurement:
    """A measurement from the result of `tasks.measure`, as JSON carries it."""
    usages = [Usage(*usage) for usage in fields["usages"]]
    return Measurement(place, **{**fields, "usages": usages})


def joined(measurements: Sequence[Measurement]) -> Measurement:
    """Joins the measurements of a place."""
    return measurements[0]._replace(
        usages=[usage for measured in measurements for usage in measured.usages],
        values=[value for measured in measurements for value in measured.values],
    )


def tokens_per_second(found: Measurement) -> float:
    """Target tokens of a run over its median time."""
    return found.tokens / statistics.median(usage.seconds for usage in found.usages)


def speeds_of(measurements: Sequence[Measurement]) -> dict[Place, Speed]:
    """One speed for each place, from the runs of all rounds."""
    rounds: dict[Place, list[Measurement]] = {}
    for measured in measurements:
        rounds.setdefault(measured.place, []).append(measured)
    return {place: _speed(of_place) for place, of_place in rounds.items()}


def _speed(rounds: Sequence[Measurement]) -> Speed:
    together = joined(rounds)
    usages, steps = together.usages, together.steps
    return Speed(
        tokens_per_second(together),
        statistics.median(usage.seconds for usage in usages) / steps,
        statistics.mean(usage.minor_faults for usage in usages) / steps,
        statistics.mean(usage.system_seconds for usage in usages) / steps,
        [tokens_per_second(runs) for runs in rounds],
    )


def row(place: Place, speed: Speed) -> dict[str, Any]:
    """A speed as a row of a result file."""
    where = {"shape": place.shape, "system": place.system, **place.cell._asdict()}
    return where | speed._asdict()


def costs(speeds: Speeds, shape: str) -> str:
    """A table of page faults and system time of a shape, a row for each system and cell."""
    rows = [
        [
            f"`{place.system}`",
            str(place.cell),
            f"{speed.minor_faults:,.0f}",
            f"{1000 * speed.system_seconds:,.1f}",
            f"{1000 * speed.median_seconds:,.1f}",
        ]
        for place, speed in speeds.items()
        if place.shape == shape
    ]
    header = ["system", "work", "minor page faults", "system time, ms", "time, ms"]
    return markdown(header, rows, left=2)


def finish(
    rows: Sequence[dict[str, Any]],
    skipped: Mapping[str, list[str]],
    failed: Mapping[Job, str],
    packages: Collection[str],
    output: str,
) -> None:
    """Ends a comparison: prints its circumstances, writes its result file, exits with its status.

    Args:
        rows: the measurements.
        skipped: systems that lack packages.
        failed: jobs that failed, with the reason.
        packages: distributions whose versions matter.
        output: path of the result file; empty: none.
    """
    found = circumstances(*packages)
    lines = [f"skipped: {name} (needs {', '.join(lacks)})" for name, lacks in skipped.items()]
    lines += [f"failed: {' '.join(job)} ({reason})" for job, reason in failed.items()]
    machine = found["machine"]
    lines.append(f"{machine['processor']}, {machine['cores']} cores, {machine['instruction_set']}")
    lines.append(", ".join(f"{name} {version}" for name, version in found["versions"].items()))
    print("", *lines, found["command"], sep="\n")
    absent = {"skipped": dict(skipped), "failed": {" ".join(job): failed[job] for job in failed}}
    results.save(output, rows, tuple(packages), **absent)
    if failed:
        sys.exit(1)
