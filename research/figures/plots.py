"""The plots that are drawn from result files, by the names of these files."""

import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness.results import ROOT, Row, read, result_names
from research.equal_budgets import ALL

FOLDER = ROOT / "research" / "docs" / "images"

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "tf_transformer"  # equal results give equal files
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text


def heads(result: dict[str, Any]) -> Figure:
    """A heat map of the BLEU lost without each head, and BLEU by the number of heads kept."""
    rows = result["measurements"]
    kinds = list(dict.fromkeys(row["attention"] for row in rows))
    largest = max(abs(row["bleu_lost"]) for row in rows)
    figure, axes = pyplot.subplots(1, len(kinds) + 1, figsize=(12, 3), layout="constrained")
    for axis, kind in zip(axes, kinds, strict=False):
        lost = {
            (row["layer"], row["number"]): row["bleu_lost"]
            for row in rows
            if row["attention"] == kind
        }
        layers, numbers = (range(max(place) + 1) for place in zip(*lost, strict=True))
        image = axis.imshow(
            [[lost[layer, number] for number in numbers] for layer in layers],
            cmap="coolwarm",
            vmin=-largest,
            vmax=largest,
        )
        axis.set(title=kind, xlabel="head", ylabel="layer", xticks=numbers, yticks=layers)
        axis.set_xticklabels([number + 1 for number in numbers])
        axis.set_yticklabels([layer + 1 for layer in layers])
    figure.colorbar(image, ax=axes[:-1], label="BLEU lost")
    axes[-1].plot(
        [row["kept"] for row in result["pruned"]], [row["bleu"] for row in result["pruned"]], "o-"
    )
    axes[-1].set(title="without the least important", xlabel="heads kept", ylabel="BLEU")
    return figure


def layer_complexity(result: dict[str, Any]) -> Figure:
    """The time of each kind of layer by each size, with the slope of the paper."""
    sizes = list(dict.fromkeys(row["changed"] for row in result["measurements"]))
    figure, axes = pyplot.subplots(1, len(sizes), figsize=(12, 3), layout="constrained")
    colors: dict[str, str] = {}
    for axis, size in zip(axes, sizes, strict=True):
        for fitted in (row for row in result["fitted"] if row["size"] == size):
            layer, slope = fitted["layer"], fitted["exponent in the paper"]
            points = [
                (row[size], row["seconds"])
                for row in result["measurements"]
                if (row["layer"], row["changed"]) == (layer, size)
            ]
            color = colors.setdefault(layer, f"C{len(colors)}")
            axis.loglog(*zip(*points, strict=True), "o-", color=color, label=layer)
            (first, seconds), (last, _) = points[0], points[-1]
            line = [seconds, seconds * (last / first) ** slope]
            axis.loglog([first, last], line, ":", color=color)
        measured = sorted({row[size] for row in result["measurements"] if row["changed"] == size})
        axis.set_xticks(measured, measured)
        axis.minorticks_off()
        axis.set(xlabel=size)
    axes[0].set(ylabel="seconds, forward and backward")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def by_length(result: dict[str, Any]) -> Figure:
    """BLEU and the speed of translation of each model, by the number of source tokens."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3), layout="constrained")
    rows = [row for row in result["measurements"] if row["source_tokens"] != ALL]
    for axis, field in zip(axes, ("bleu", "tokens_per_second"), strict=True):
        for model, of_model in _grouped(rows, "model").items():
            points = [(row["source_tokens"], row[field]) for row in of_model]
            axis.plot(*zip(*points, strict=True), "o-", label=model)
        axis.set(xlabel="source tokens")
    axes[0].set(ylabel="BLEU")
    axes[1].set(ylabel="target tokens per second", ylim=(0, None))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def long_sequences(result: dict[str, Any]) -> Figure:
    """Memory and time of a forward and backward pass, and time of a decoding step, by length."""
    fields = {
        "memory_mb": "MB, forward and backward",
        "seconds": "seconds, forward and backward",
        "step_ms": "ms, decoding step",
    }
    figure, axes = pyplot.subplots(1, len(fields), figsize=(12, 3), layout="constrained")
    for axis, (field, label) in zip(axes, fields.items(), strict=True):
        for attention, rows in _grouped(result["measurements"], "attention").items():
            points = [(row["length"], row[field]) for row in rows if row["fits"]]
            axis.loglog(*zip(*points, strict=True), "o-", label=attention)
        lengths = sorted({row["length"] for row in result["measurements"]})
        axis.set_xticks(
            lengths, [f"{length // 1024}k" if length >= 1024 else length for length in lengths]
        )
        axis.minorticks_off()
        axis.set(xlabel="tokens", ylabel=label)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def pretraining(result: dict[str, Any]) -> Figure:
    """Accuracy by the number of labels with and without pre-training, with its deviation."""
    figure, axis = pyplot.subplots(figsize=(5, 3), layout="constrained")
    for pretrained, rows in _grouped(result["measurements"], "pretrained").items():
        fields = ("labels", "accuracy", "accuracy_deviation")
        labels, accuracy, deviation = ([row[field] for row in rows] for field in fields)
        name = "pre-trained" if pretrained == "yes" else "from random weights"
        axis.errorbar(labels, accuracy, deviation, marker="o", capsize=3, label=name)
    axis.set(xlabel="labelled texts", ylabel="accuracy", xscale="log")
    axis.set_xticks(labels, labels)
    axis.minorticks_off()
    axis.legend()
    return figure


def parsing(result: dict[str, Any]) -> Figure:
    """F1 of each system."""
    rows = sorted(result["measurements"], key=lambda row: row["f1"])
    figure, axis = pyplot.subplots(figsize=(7, 3), layout="constrained")
    bars = axis.barh(
        [row["system"].removeprefix("runs/") for row in rows], [row["f1"] for row in rows]
    )
    axis.bar_label(bars, padding=3)
    axis.set(xlabel="F1", xlim=(0, 100))
    return figure


def ablations(result: dict[str, Any]) -> Figure:
    """BLEU of each change with the distance of its seeds, and a line at the unchanged model."""
    rows = result["measurements"]
    figure, axis = pyplot.subplots(figsize=(7, 1 + 0.3 * len(rows)), layout="constrained")
    for group, of_group in _grouped(rows, "row").items():
        scores, changes = ([row[field] for row in of_group] for field in ("bleu", "change"))
        spreads = [row["bleu_spread"] or 0 for row in of_group]  # one seed has none
        axis.errorbar(scores, changes, xerr=spreads, fmt="o", capsize=3, label=group)
    axis.axvline(rows[0]["bleu"], color="gray", linestyle=":")
    axis.invert_yaxis()
    axis.set(xlabel="BLEU of the development set")
    axis.legend()
    return figure


def _grouped(rows: Iterable[Row], field: str) -> dict[str, list[Row]]:
    """The rows by the value of a field."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[field], []).append(row)
    return groups


PLOTS: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "ablations": ablations,
    "heads": heads,
    "layer_complexity": layer_complexity,
    "long_sequences": long_sequences,
    "parsing": parsing,
    "positions": by_length,
    "positions_short": by_length,
    "pretraining": pretraining,
    "recurrent": by_length,
    "regularization": ablations,
}


def draw_all() -> list[pathlib.Path]:
    """Draws the plots of all result files that have one; returns the files in `FOLDER`."""
    FOLDER.mkdir(exist_ok=True)
    return [draw(name, FOLDER / f"{name}.svg") for name in result_names() if name in PLOTS]


def draw(name: str, path: pathlib.Path) -> pathlib.Path:
    """Draws the plot of a result file."""
    figure = PLOTS[name](read(name))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
