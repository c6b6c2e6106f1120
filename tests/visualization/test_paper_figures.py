"""The figures of equations and speeds: they have the right numbers, and the pages show them."""

import pathlib
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from benchmarks.figures.speeds import MACHINES, speeds
from docs import figures
from tf_transformer.visualization.charts import image_of

DOCS = pathlib.Path(figures.__file__).parent


def curves(svg):
    """The x and y (2, N) of each curve that has an id, by this id."""
    found = re.findall(r'<g id="([^"]+)">\s*<path d="(M[^"]+)" clip-path', svg)
    return {
        name: np.array(re.findall(r"[ML] (\S+) (\S+)", path), float).T
        for name, path in found
        if not name.startswith(("line2d", "patch", "text"))
    }


def test_the_schedule_is_equation_3():
    lines = {line.get_label(): line.get_ydata() for line in figures.schedule().axes[0].lines}
    for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000), (1024, 4000)):
        steps = np.arange(1.0, figures.UPDATES + 1)
        expected = d_model**-0.5 * np.minimum(steps**-0.5, steps * warmup**-1.5)
        found = lines.pop(f"d_model {d_model}, warm-up {warmup:,}")
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not lines


def test_the_encodings_are_those_of_section_3_5():
    heat_map, curve, *_ = figures.positional_encodings().axes
    image = heat_map.images[0].get_array()
    position, pair = np.ogrid[: figures.POSITIONS, : figures.D_MODEL // 2]
    angles = position / 10_000 ** (2 * pair / figures.D_MODEL)
    np.testing.assert_allclose(image[:, ::2], np.sin(angles), atol=1e-4)
    np.testing.assert_allclose(image[:, 1::2], np.cos(angles), atol=1e-4)
    # cos(a - b), summed over the rates: equal for every two positions of equal distance
    products = np.cos(angles).sum(axis=1)
    np.testing.assert_allclose(curve.lines[0].get_ydata(), products, atol=1e-3)
    np.testing.assert_allclose(image[7:] @ image[7], products[: figures.POSITIONS - 7], atol=1e-3)


def test_the_bars_are_the_ratios_of_the_tables():
    panels = figures.speed().axes
    for axis, machine in zip(panels, MACHINES.values(), strict=True):
        default, compiled = ([bar.get_width() for bar in bars] for bars in axis.containers)
        rows = speeds(machine).splitlines()[2:]
        ratios = [[float(ratio) for ratio in re.findall(r"\((\d\.\d\d)\)", row)] for row in rows]
        np.testing.assert_allclose(np.transpose([default, compiled]), ratios, atol=0.005)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_the_pages_show_the_figures_that_the_command_draws(name):
    """Equal to a tenth of a point: versions of matplotlib keep other points of a smooth curve."""
    drawn = image_of(figures.FIGURES[name](), ".svg")
    assert drawn == image_of(figures.FIGURES[name](), ".svg"), "not reproducible"
    shown = (DOCS / "images" / f"{name}.svg").read_text("utf-8")
    message = "run python -m docs.figures"
    texts = [re.findall(r">([^<>]+)</text>", svg) for svg in (shown, drawn.decode())]
    assert texts[0] == texts[1], message
    stored, now = curves(shown), curves(drawn.decode())
    assert stored.keys() == now.keys() != set(), message
    for curve in now:
        x = np.union1d(stored[curve][0], now[curve][0])
        y = [np.interp(x, *points) for points in (stored[curve], now[curve])]
        np.testing.assert_allclose(*y, atol=0.1, err_msg=message)
    pages = [page.read_text("utf-8") for page in DOCS.rglob("*.md")]
    assert any(f"images/{name}.svg" in page and "python -m docs.figures" in page for page in pages)
