"""research/heads: the importance of heads."""

import json

from research import heads
from research.figures import plots


def test_the_importance_of_heads_is_measured_and_drawn(run, tmp_path, monkeypatch):
    """Without all heads, and with the weights restored, BLEU is what the translator's own is."""
    for name, lines in {
        "source": ["one", "two", "three"],
        "reference": ["a b c d", "e", "f"],
    }.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    files = {name: str(tmp_path / name) for name in ("source", "reference")}
    scores = iter([50.0, *range(40, 46), *range(11)])  # whole, six heads, eleven numbers of heads
    monkeypatch.setattr(heads, "bleu", lambda *_: float(next(scores)))
    heads.main(str(run), **files, output=str(tmp_path / "heads.json"))
    result = json.loads((tmp_path / "heads.json").read_text("utf-8"))
    assert [row["bleu_lost"] for row in result["measurements"]] == [10, 9, 8, 7, 6, 5]
    assert [row["kept"] for row in result["pruned"]] == [6, 6, 5, 5, 4, 3, 3, 2, 2, 1, 0]
    monkeypatch.setattr(plots, "read", lambda name: result)
    assert "BLEU lost" in plots.draw("heads", tmp_path / "heads.svg").read_text("utf-8")
