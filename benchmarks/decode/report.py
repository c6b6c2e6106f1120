"""The table of translation speeds: a row for each system, a column for each cell."""

from collections.abc import Sequence

from benchmarks.decode.systems import REFERENCE
from benchmarks.decode.workload import Cell
from benchmarks.harness.results import Row
from benchmarks.harness.shapes import SHAPES
from benchmarks.harness.speed import Place, Speeds, row
from benchmarks.harness.tables import markdown


def ratio(speeds: Speeds, place: Place) -> float | None:
    """Speed relative to the reference in the same cell; None without a speed of the reference."""
    reference = speeds.get(place._replace(system=REFERENCE))
    if reference is None:
        return None
    return speeds[place].tokens_per_second / reference.tokens_per_second


def table(speeds: Speeds, shape: str, systems: Sequence[str], cells: Sequence[Cell]) -> str:
    """A Markdown table of a shape; a row for each system that has a speed."""
    rows = []
    for system in systems:
        places = [Place(shape, system, cell) for cell in cells]
        if any(place in speeds for place in places):
            rows.append([f"`{system}`", *(_entry(speeds, place) for place in places)])
    return f"{shape}: {SHAPES[shape]}\n\n{markdown(['system', *map(str, cells)], rows)}"


def rows_of(speeds: Speeds) -> list[Row]:
    """The rows of the result file."""
    return [
        row(place, speed) | {f"ratio_to_{REFERENCE}": ratio(speeds, place)}
        for place, speed in speeds.items()
    ]


def _entry(speeds: Speeds, place: Place) -> str:
    if place not in speeds:
        return "–"
    speed, over = speeds[place].tokens_per_second, ratio(speeds, place)
    return f"{speed:,.0f}" if over is None else f"{speed:,.0f} ({over:.2f})"
