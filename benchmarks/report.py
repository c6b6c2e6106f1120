"""From measured seconds to the table: medians, tokens a second, ratios."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workload import SHAPES, TOKENS, Cell

REFERENCE = "ctranslate2"


class Measurement(NamedTuple):
    """What one process measured in one cell."""

    shape: str
    contender: str
    cell: Cell
    sentences: int  # a call
    seconds: list[float]  # a call each


class Figure(NamedTuple):
    """What a table shows of a contender in a cell."""

    tokens_per_second: float
    median_seconds: float  # of a call, over all rounds
    rounds: list[float]  # tokens a second by each round's own median


class Place(NamedTuple):
    """Where a figure stands."""

    shape: str
    contender: str
    cell: Cell


Figures = Mapping[Place, Figure]


def tokens_per_second(measurement: Measurement) -> float:
    """Target tokens over the median time of a call."""
    return measurement.sentences * TOKENS / statistics.median(measurement.seconds)


def figures_of(measurements: Sequence[Measurement]) -> dict[Place, Figure]:
    """Medians over the calls of all rounds, a figure a shape, contender and cell."""
    found: dict[Place, list[Measurement]] = {}
    for measurement in measurements:
        found.setdefault(Place(*measurement[:3]), []).append(measurement)
    return {place: _figure(rounds) for place, rounds in found.items()}


def _figure(rounds: Sequence[Measurement]) -> Figure:
    together = rounds[0]._replace(seconds=[s for measured in rounds for s in measured.seconds])
    return Figure(
        tokens_per_second(together),
        statistics.median(together.seconds),
        [tokens_per_second(measured) for measured in rounds],
    )


def ratio(figures: Figures, place: Place) -> float | None:
    """Speed over that of the reference in the same cell; None when that was not measured."""
    reference = figures.get(place._replace(contender=REFERENCE))
    if reference is None:
        return None
    return figures[place].tokens_per_second / reference.tokens_per_second


def table(figures: Figures, shape: str, contenders: Sequence[str], cells: Sequence[Cell]) -> str:
    """A Markdown table of a shape; a row for each contender that has a figure."""
    rows = [["contender", *map(str, cells)], ["---", *("---:" for _ in cells)]]
    for contender in contenders:
        places = [Place(shape, contender, cell) for cell in cells]
        if any(place in figures for place in places):
            rows.append([f"`{contender}`", *(_entry(figures, place) for place in places)])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"{shape}: {SHAPES[shape]}", "", *lines])


def _entry(figures: Figures, place: Place) -> str:
    if place not in figures:
        return "–"
    speed, over = figures[place].tokens_per_second, ratio(figures, place)
    return f"{speed:,.0f}" if over is None else f"{speed:,.0f} ({over:.2f})"


def notes(
    about: Mapping[str, Any], skipped: Mapping[str, list[str]], failed: Mapping[Any, str]
) -> str:
    """Lines below the tables: what is not in them and why, and what they were measured with."""
    lines = [f"skipped: {name} (needs {', '.join(lacks)})" for name, lacks in skipped.items()]
    lines += [f"failed: {' '.join(job)} ({why})" for job, why in failed.items()]
    packages = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return "\n".join([*lines, about["machine"], packages, about["command"]])


def as_json(figures: Figures) -> list[dict[str, Any]]:
    """All figures, a dictionary each."""
    return [
        {
            "shape": place.shape,
            "contender": place.contender,
            **place.cell._asdict(),
            **figure._asdict(),
            f"ratio_to_{REFERENCE}": ratio(figures, place),
        }
        for place, figure in figures.items()
    ]
