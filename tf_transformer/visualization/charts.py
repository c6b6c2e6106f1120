"""Charts of counts, and the image files of all charts and pictures; matplotlib draws them."""

import importlib.util
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (4.8, 2.0)  # inches


def is_available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def histogram(counts: Mapping[int, int], width: int, xlabel: str) -> "Figure":
    """Counts by the start of a bar, all bars as wide as `width`.

    Example:
        >>> [int(bar.get_height()) for bar in histogram({0: 3, 5: 7}, 5, "").axes[0].patches]
        [3, 7]
    """
    figure, axis = _chart(xlabel)
    axis.bar(list(counts), list(counts.values()), 0.9 * width, align="edge", gid="bars")
    return figure


def curve(points: Sequence[tuple[int, int]], xlabel: str) -> "Figure":
    """A line through points, from the origin.

    Example:
        >>> curve([(10, 4), (20, 6)], "words").axes[0].lines[0].get_ydata().tolist()
        [0, 4, 6]
    """
    figure, axis = _chart(xlabel)
    axis.plot(*zip((0, 0), *points, strict=True), gid="curve")
    axis.set(xlim=(0, None), ylim=(0, None))
    return figure


def _chart(xlabel: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(_SIZE, layout="constrained")
    axis = figure.subplots()
    axis.set_xlabel(xlabel)
    axis.grid(alpha=0.3)
    for dimension in (axis.xaxis, axis.yaxis):
        dimension.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure, axis


def image_of(figure: "Figure", suffix: str, dpi: int = 100) -> bytes:
    """The content of an image file, such as .svg or .png. Equal figures give equal SVG files."""
    from matplotlib import rc_context

    file, kind = io.BytesIO(), suffix.removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else None
    with rc_context({"svg.hashsalt": "tf_transformer", "svg.fonttype": "none"}):  # text is text
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return file.getvalue()
