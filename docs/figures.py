"""Draws the paper's schedule and positional encodings, and speeds: python -m docs.figures.

The pictures are in docs/images. Speeds are those of the result files.

Needs matplotlib (the extra `plots`).
"""

import pathlib
from collections.abc import Callable

import numpy as np
from keras import ops
from matplotlib.figure import Figure

from benchmarks.figures.speeds import MACHINES, works
from tf_transformer.layers.position import sinusoids
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.visualization.paper_figures import draw_positions, draw_schedules, to_svg

FOLDER = pathlib.Path(__file__).with_name("images")
SIZES = ((512, 4000), (512, 8000), (256, 4000), (1024, 4000))  # d_model, warmup_steps
UPDATES = 20_000
POSITIONS, D_MODEL = 100, 128
MACHINE_TITLES = {
    "amd_avx512": "AMD with AVX-512",
    "amd_avx2": "AMD, AVX2 alone",
}
BAR = 0.4  # height; a kind of work has two


def schedule() -> Figure:
    """Equation 3 for the base model of the paper, twice its warm-up, and other sizes."""
    updates = np.arange(UPDATES)
    return draw_schedules(
        {
            f"d_model {d_model}, warm-up {warmup_steps:,}": ops.convert_to_numpy(
                TransformerSchedule(d_model, warmup_steps)(updates)
            )
            for d_model, warmup_steps in SIZES
        }
    )


def positional_encodings() -> Figure:
    """The encodings of section 3.5."""
    return draw_positions(ops.convert_to_numpy(sinusoids(ops.arange(POSITIONS), D_MODEL)))


def speed() -> Figure:
    """This project's speed over that of the fastest other system, by machine and kind of work."""
    figure = Figure((9, 5.4), layout="constrained")
    panels = figure.subplots(1, len(MACHINES), sharex=True, sharey=True)
    for axis, (name, machine) in zip(panels, MACHINES.items(), strict=True):
        measured = works(machine)
        places = np.arange(len(measured))
        ratios = {
            "default": [work.default / work.fastest for work in measured],
            "compiled by XLA": [work.compiled / work.fastest for work in measured],
        }
        for offset, (label, widths) in zip((-BAR / 2, BAR / 2), ratios.items(), strict=True):
            bars = axis.barh(places + offset, widths, BAR, label=label)
            texts = [f"{width:.2f}" for width in widths]
            over_line = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            axis.bar_label(bars, texts, padding=2, fontsize=7, bbox=over_line)
        axis.axvline(1, color="black", linewidth=1, gid=f"equal speed, {name}")
        axis.set(title=MACHINE_TITLES[name], xlim=(0, 2))
    names = [work.name.removesuffix(", sentences/s") for work in works(MACHINES["amd_avx512"])]
    panels[0].set_yticks(np.arange(len(names)), names)
    panels[0].invert_yaxis()  # the first kind of work on top, on all panels
    figure.supxlabel("speed of this project / speed of the fastest other system")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "schedule": schedule,
    "positional_encodings": positional_encodings,
    "speed": speed,
}


if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (FOLDER / f"{name}.svg").write_bytes(to_svg(draw()))
        print(f"drew docs/images/{name}.svg")
