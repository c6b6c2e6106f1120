"""Curves of training runs: every metric of every run is drawn."""

import json
import re

import pytest

from tf_transformer.commands import command_line, plot
from tf_transformer.errors import InputError
from tf_transformer.visualization.curves import draw_curves


def test_the_curves_go_through_the_points_of_each_run():
    """Their coordinates are affine functions of the metrics; read from an SVG."""
    losses = {"a": [4.0, 2.0, 1.0], "b": [3.0, 3.0, 0.0]}
    runs = {
        run: [{"step": 10 * n, "loss": loss} for n, loss in enumerate(rows)]
        for run, rows in losses.items()
    }
    svg = draw_curves(runs, ".svg").decode()
    points = []
    for run in runs:
        (path,) = re.findall(rf'<g id="{run}">\s*<path d="([^"]+)"', svg)
        points += [tuple(map(float, each)) for each in re.findall(r"[ML] (\S+) (\S+)", path)]
    (left, _), _, (right, _), *_ = points
    middle = (left + right) / 2
    assert [x for x, _ in points] == pytest.approx(2 * [left, middle, right])
    heights = [y for _, y in points]
    bottom, top = heights[5], heights[0]
    expected = [bottom + (top - bottom) * loss / 4 for run in losses.values() for loss in run]
    assert heights == pytest.approx(expected, abs=1e-3)


def test_the_command_draws_the_metrics_of_runs(run, tmp_path, capsys):
    output = tmp_path / "new" / "curves.svg"
    command_line.run(plot.main, [str(run), str(run), "--output", str(output)])
    assert capsys.readouterr().out == f"drew {output}\n"
    names = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert "val_bleu" in names
    assert output.read_text().count(">BLEU</text>") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected run_dirs."),
        (["{tmp}"], "is not a run's folder"),
        (["{run}", "--output", "curves.gif"], "--output must end in .png, .svg, .pdf"),
    ],
)
def test_errors_name_the_cause(run, tmp_path, capsys, words, message):
    words = [word.format(run=run, tmp=tmp_path) for word in words]
    with pytest.raises(SystemExit) as exit_info:
        command_line.run(plot.main, words)
    assert message in str(exit_info.value.code) + capsys.readouterr().err


def test_a_run_without_metrics_is_an_error(run, tmp_path):
    (tmp_path / "config.yaml").write_bytes((run / "config.yaml").read_bytes())
    with pytest.raises(InputError, match="has no metrics yet"):
        plot.main(str(tmp_path))
