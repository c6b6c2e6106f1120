"""Figures of two equations of the paper: the schedule and the positional encodings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_schedules(rates: Mapping[str, np.ndarray]) -> "Figure":
    """The learning rates of updates 1, 2, …, float (N,), by label of curve (paper equation 3).

    Example:
        >>> draw_schedules({"d_model 4": np.array([0.1, 0.2, 0.1])}).axes[0].get_xlabel()
        'update'
    """
    from matplotlib.figure import Figure

    figure = Figure((7, 3.2), layout="constrained")
    axis = figure.subplots()
    for label, curve in rates.items():
        axis.plot(np.arange(1, len(curve) + 1), curve, label=label, gid=label)
    axis.set(xlabel="update", ylabel="learning rate", xlim=(0, None), ylim=(0, None))
    axis.grid(alpha=0.3)
    axis.legend()
    return figure


def draw_positions(encodings: np.ndarray) -> "Figure":
    """The encodings (T, D) of positions 0, 1, … as a heat map, and their products by distance.

    The product of two encodings of the paper's section 3.5 depends only on the distance of their
    positions: sin a sin b + cos a cos b = cos(a - b).

    Example:
        >>> figure = draw_positions(np.eye(4))
        >>> [axis.get_xlabel() for axis in figure.axes[:2]]
        ['dimension', 'distance of two positions']
    """
    from matplotlib.figure import Figure

    figure = Figure((10, 3.6), layout="constrained")
    heat_map, curve = figure.subplots(1, 2)
    image = heat_map.imshow(
        encodings, cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="none"
    )
    heat_map.set(title="encodings", xlabel="dimension", ylabel="position")
    figure.colorbar(image, ax=heat_map)
    curve.plot(encodings @ encodings[0], gid="products")
    curve.set(title="products", xlabel="distance of two positions", ylabel="product of encodings")
    curve.grid(alpha=0.3)
    return figure
