"""Curves of training runs: losses, scores, learning rate and speed over the updates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tf_transformer.visualization.charts import image_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg", ".pdf")
_LABELS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact_match": "exact matches, %",
    "gradient_norm": "norm of gradients",
    "learning_rate": "learning rate",
    "tokens_per_second": "target tokens per second",
}
_OTHERS = ("step", "skipped")  # fields without a curve


def draw_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]], suffix: str) -> bytes:
    """The content of an image file with a plot for each metric and a color for each run.

    Training (solid lines) and validation (dashed lines) share a plot. `runs` has the rows of
    `metrics.jsonl` by the name of the run, and `suffix` is one of `FORMATS`.

    Example:
        >>> rows = [{"step": 1, "loss": 2.0, "val_loss": 3.0}, {"step": 2, "loss": 1.0}]
        >>> draw_curves({"runs/demo": rows}, ".png")[1:4]
        b'PNG'
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    metrics = _metrics(row for rows in runs.values() for row in rows)
    columns = max(1, min(3, len(metrics)))
    rows_of_plots = -(-len(metrics) // columns)
    figure = Figure((4 * columns, 3 * rows_of_plots + 0.4), layout="constrained")
    axes = list(figure.subplots(rows_of_plots, columns, squeeze=False).flat)
    for metric, axis in zip(metrics, axes, strict=False):
        axis.set(title=_LABELS.get(metric, metric), xlabel="updates")
        axis.grid(alpha=0.3)
        for number, (name, rows) in enumerate(runs.items()):
            _draw(axis, rows, metric, f"C{number}", name)
    for axis in axes[len(metrics) :]:
        axis.set_axis_off()
    lines = [Line2D([], [], color=f"C{n}", label=name) for n, name in enumerate(runs)]
    lines.append(Line2D([], [], color="grey", label="training"))
    lines.append(Line2D([], [], color="grey", linestyle="--", label="validation"))
    figure.legend(handles=lines, loc="outside upper center", ncols=4)
    return image_of(figure, suffix, dpi=120)


def _metrics(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names without `val_`, sorted: the loss, scores of validation, then other metrics."""
    names = dict.fromkeys(name for row in rows for name in row if name not in _OTHERS)
    metrics = dict.fromkeys(name.removeprefix("val_") for name in names)
    return sorted(metrics, key=lambda name: (name != "loss", f"val_{name}" not in names))


def _draw(
    axis: "Axes", rows: Sequence[Mapping[str, Any]], metric: str, color: str, run: str
) -> None:
    for name, style in ((metric, "-"), (f"val_{metric}", "--")):
        points = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
        if points:
            marker = "o" if len(points) == 1 else ""
            axis.plot(*zip(*points, strict=True), style, marker=marker, color=color, gid=run)
