"""The table of training speeds: ratios to the fastest other system, parameters, losses."""

from collections.abc import Mapping, Sequence

from benchmarks.harness.results import Row
from benchmarks.harness.shapes import SHAPES
from benchmarks.harness.speed import Measurement, Place, Speeds, row, tokens_per_second
from benchmarks.harness.tables import markdown
from benchmarks.train.systems import OURS
from benchmarks.train.workload import Cell, check_losses, check_parameters

Last = Mapping[Place, Measurement]  # of the last round


def check(found: Measurement) -> None:
    """Refuses the speed of a system that does not do the work.

    Raises:
        RuntimeError: see `check_parameters` and `check_losses`.
    """
    shape = SHAPES[found.place.shape]
    check_parameters(found.parameters, shape)
    check_losses(found.values, shape.vocabulary_size)


def describe(found: Measurement) -> str:
    """A line of progress."""
    return (
        f"{tokens_per_second(found):,.0f} tokens/s, {found.parameters:,} parameters, "
        f"loss {found.values[0]:.3f} to {found.values[-1]:.3f}"
    )


def ratio(speeds: Speeds, place: Place) -> float | None:
    """Speed relative to the fastest other system; None without another system."""
    others = [
        speed.tokens_per_second
        for other, speed in speeds.items()
        if other.shape == place.shape and other.system not in OURS
    ]
    return speeds[place].tokens_per_second / max(others) if others else None


def table(speeds: Speeds, last: Last, shape: str, cell: Cell, systems: Sequence[str]) -> str:
    """A Markdown table of a shape; a row for each system that has a speed."""
    rows = []
    for place in (Place(shape, system, cell) for system in systems):
        if place in speeds:
            over, found = ratio(speeds, place), last[place]
            rows.append(
                [
                    f"`{place.system}`",
                    f"{speeds[place].tokens_per_second:,.0f}",
                    "–" if over is None else f"{over:.2f}",
                    f"{found.parameters:,}",
                    f"{found.values[0]:.3f} to {found.values[-1]:.3f}",
                    f"{found.ready_seconds:.0f}",
                ]
            )
    header = ["system", "tokens/s", "to the fastest other", "parameters", "loss", "s to warm up"]
    return f"{shape}: {SHAPES[shape]}; {cell} per update\n\n{markdown(header, rows)}"


def rows_of(speeds: Speeds, last: Last) -> list[Row]:
    """The rows of the result file."""
    return [
        row(place, speed)
        | {
            "ratio_to_fastest_other": ratio(speeds, place),
            "parameters": last[place].parameters,
            "first_loss": last[place].values[0],
            "last_loss": last[place].values[-1],
            "ready_seconds": round(last[place].ready_seconds, 1),
        }
        for place, speed in speeds.items()
    ]
