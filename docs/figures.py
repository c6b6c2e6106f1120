"""Draws the paper's schedule and positional encodings into docs/images: python -m docs.figures.

Needs matplotlib (the extra `plots`).
"""

import pathlib
from collections.abc import Callable

import numpy as np
from keras import ops
from matplotlib.figure import Figure

from tf_transformer.layers.position import sinusoids
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.visualization.paper_figures import draw_positions, draw_schedules, to_svg

FOLDER = pathlib.Path(__file__).with_name("images")
SIZES = ((512, 4000), (512, 8000), (256, 4000), (1024, 4000))  # d_model, warmup_steps
UPDATES = 20_000
POSITIONS, D_MODEL = 100, 128


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


FIGURES: dict[str, Callable[[], Figure]] = {
    "schedule": schedule,
    "positional_encodings": positional_encodings,
}


if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (FOLDER / f"{name}.svg").write_bytes(to_svg(draw()))
        print(f"drew docs/images/{name}.svg")
