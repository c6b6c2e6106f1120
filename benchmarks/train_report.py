"""From timed passes to the table: medians, ratios to the fastest peer, parameters, losses."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from train_contenders import OURS
from train_workload import BATCHES, WORKS


class Measurement(NamedTuple):
    """What one process found."""

    shape: str
    contender: str
    seconds: list[float]  # a timed pass each
    losses: list[float]  # a pass each, the warm-up's among them
    parameters: int


class Place(NamedTuple):
    """Where a figure stands."""

    shape: str
    contender: str


class Figure(NamedTuple):
    """What a table shows of a contender and shape."""

    tokens_per_second: float
    median_seconds: float  # of an update, over all rounds
    rounds: list[float]  # tokens a second by each round's own median
    parameters: int
    first_loss: float  # of the last round
    last_loss: float


Figures = Mapping[Place, Figure]


def joined(measurements: Sequence[Measurement]) -> Measurement:
    """What a process reported piece by piece, as one."""
    return measurements[0]._replace(
        seconds=[second for found in measurements for second in found.seconds],
        losses=[loss for found in measurements for loss in found.losses],
    )


def tokens_per_second(measurement: Measurement) -> float:
    """Target tokens of a pass over its median time."""
    work = WORKS[measurement.shape]
    return BATCHES * work.sentences * work.tokens / statistics.median(measurement.seconds)


def describe(found: Measurement) -> str:
    """A line of progress."""
    return (
        f"{tokens_per_second(found):,.0f} tokens/s, {found.parameters:,} parameters, "
        f"loss {found.losses[0]:.3f} to {found.losses[-1]:.3f}"
    )


def figures_of(measurements: Sequence[Measurement]) -> dict[Place, Figure]:
    """Medians over the passes of all rounds, a figure a shape and contender."""
    found: dict[Place, list[Measurement]] = {}
    for measurement in measurements:
        found.setdefault(Place(*measurement[:2]), []).append(measurement)
    return {place: _figure(rounds) for place, rounds in found.items()}


def _figure(rounds: Sequence[Measurement]) -> Figure:
    last, together = rounds[-1], joined(rounds)
    return Figure(
        tokens_per_second(together),
        statistics.median(together.seconds) / BATCHES,
        [tokens_per_second(measured) for measured in rounds],
        last.parameters,
        last.losses[0],
        last.losses[-1],
    )


def ratio(figures: Figures, place: Place) -> float | None:
    """Speed over that of the fastest peer of the same shape; None when no peer was measured."""
    peers = [
        figure.tokens_per_second
        for peer, figure in figures.items()
        if peer.shape == place.shape and peer.contender not in OURS
    ]
    return figures[place].tokens_per_second / max(peers) if peers else None


def table(figures: Figures, shape: str, contenders: Sequence[str]) -> str:
    """A Markdown table of a shape; a row for each contender that has a figure."""
    rows = [
        ["contender", "tokens/s", "to the fastest peer", "parameters", "loss"],
        ["---", "---:", "---:", "---:", "---:"],
    ]
    for place in (Place(shape, contender) for contender in contenders):
        if place in figures:
            figure, over = figures[place], ratio(figures, place)
            rows.append(
                [
                    f"`{place.contender}`",
                    f"{figure.tokens_per_second:,.0f}",
                    "–" if over is None else f"{over:.2f}",
                    f"{figure.parameters:,}",
                    f"{figure.first_loss:.3f} to {figure.last_loss:.3f}",
                ]
            )
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"{shape}: {WORKS[shape]}", "", *lines])


def as_json(figures: Figures) -> list[dict[str, Any]]:
    """All figures, a dictionary each."""
    return [
        place._asdict() | figure._asdict() | {"ratio_to_fastest_peer": ratio(figures, place)}
        for place, figure in figures.items()
    ]
